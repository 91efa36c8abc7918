"""Definitions whose recent runs are slowest compared with their baseline."""

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from ...core.states import COMPLETED
from ...models import DurationBaseline, Run
from ..durations import HOUR
from .duration_baselines import ENOUGH, TypicalDuration

MAX_RUNS = 2_000
MAX_SHOWN = 6
FIELDS = ("name", "version", "status", "created_at", "ended_at")


@dataclass(frozen=True, slots=True)
class SlowDefinition:
    """One definition: median duration of its recent runs (`took`, in milliseconds), and its baseline."""

    name: str
    version: int
    runs: int
    took: int
    usual: TypicalDuration

    @property
    def factor(self) -> float:
        return self.took / max(self.usual.p50, 1)

    @property
    def is_slow(self) -> bool:
        return self.usual.is_slow(self.took)


def slowest_definitions(now: int) -> list[SlowDefinition]:
    """Return the definitions whose completed runs of the last hour are slowest compared with their baseline.

    Runs two queries. Failed runs do not count: their duration says nothing about the work.
    """
    # The query does not filter by status: SQLite would read every completed run and sort all of them by their end.
    newest = Run.objects.filter(ended_at__gt=now - HOUR).order_by("-ended_at")
    took: dict[tuple[str, int], list[int]] = defaultdict(list)
    for name, version, status, began, ended in newest.values_list(*FIELDS)[:MAX_RUNS]:
        if status == COMPLETED:
            took[name, version].append(ended - began)
    rows = DurationBaseline.objects.filter(ref="", count__gte=ENOUGH, name__in={name for name, _ in took})
    found = [
        SlowDefinition(
            row.name, row.version, len(spent), round(median(spent)), TypicalDuration(row.count, row.p50_ms, row.p95_ms)
        )
        for row in rows
        if (spent := took.get((row.name, row.version)))
    ]
    return sorted(found, key=lambda each: -each.factor)[:MAX_SHOWN]
