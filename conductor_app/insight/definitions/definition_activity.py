"""Runs of one workflow over time, by result."""

from ...models import Run
from ..time_ranges import TimeRange, count_by_bar

MAX_COUNTED = 200_000
RESULTS = {"COMPLETED": "completed", "FAILED": "failed", "TIMED_OUT": "failed", "TERMINATED": "terminated"}
OPEN = "open"


def runs_by_result(name: str, time_range: TimeRange) -> tuple[dict[str, list[int]], bool]:
    """Return the runs started in each bar of a range, by result, and True if only the newest were counted.

    Runs one query, which the index of the definition's runs covers.
    """
    inside = {"created_at__gte": time_range.since, "created_at__lt": time_range.until}
    newest = Run.objects.of_definition(name).filter(**inside).order_by("-created_at")
    counts = {result: [0] * time_range.count for result in (*dict.fromkeys(RESULTS.values()), OPEN)}
    counted = 0
    for place, status, count in count_by_bar(
        newest.values("created_at", "status")[:MAX_COUNTED], time_range, ["status"]
    ):
        counts[RESULTS.get(status, OPEN)][place] += count
        counted += count
    return counts, counted >= MAX_COUNTED
