"""Filters of runs without an index: they scan the newest runs that the other filters leave."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet

from ....core.errors import Invalid
from ....core.states import TASK
from ....models import Run, Task
from ...runs.search import RUNS, Clause, QueryValue, Search, SearchQuery

SEARCHED_ROWS, REASONS = 20_000, 10_000
"""Maximum number of runs that a filter scans: in general, and for the reason."""


@dataclass(frozen=True, slots=True)
class ScannedRuns:
    """Matches among the newest `number` runs, created at `since` or later. `since` is None if all runs were scanned."""

    rows: QuerySet[Run]
    number: int
    since: int | None


def _newest_runs(rows: QuerySet[Run], number: int) -> ScannedRuns:
    since = rows.order_by("-created_at").values_list("created_at", flat=True)[number : number + 1].first()
    return ScannedRuns(rows if since is None else rows.filter(created_at__gte=since), number, since)


def _scan_newest(rows: QuerySet[Run], number: int, *conditions: Any, **more: Any) -> ScannedRuns:
    newest = _newest_runs(rows, number)
    return ScannedRuns(newest.rows.filter(*conditions, **more), number, newest.since)


def _scan_reason(rows: QuerySet[Run], text: str) -> ScannedRuns:
    """Search the reason of the newest runs that have one."""
    return _scan_newest(rows.exclude(reason=""), REASONS, reason__icontains=text)


def _scan_document(rows: QuerySet[Run], condition: str) -> ScannedRuns:
    """Search for a value at a path of a payload: `input.customer.id=42`."""
    path, sign, value = condition.partition("=")
    path = path.strip()
    if not sign or not path.startswith(("input.", "output.", "variables.", "input[", "output[", "variables[")):
        raise Invalid(f"Invalid condition '{condition[:100]}'. Write a path and a value, such as input.customer.id=42.")
    query = SearchQuery(RUNS, extra_clauses=[Clause(path, "=", (QueryValue(value.strip(), 0),), 0)])
    found_search = Search(rows, query)
    return ScannedRuns(found_search.hits(), query.scan_limit or 0, found_search.since)


def _scan_duration(operator: str) -> Callable[[QuerySet[Run], int], ScannedRuns]:
    def found(rows: QuerySet[Run], span: int) -> ScannedRuns:
        # No filter on `ended_at` here: an index must find where the newest runs begin.
        return _scan_newest(rows, SEARCHED_ROWS, **{f"ended_at__{operator}": F("created_at") + span})

    return found


def _scan_task(rows: QuerySet[Run], ref: str) -> ScannedRuns:
    """Search for runs with a task reference, optionally in a status: `charge`, `charge:FAILED`."""
    name, _, status = ref.partition(":")
    tasks = Task.objects.filter(run_id=OuterRef("pk"), ref=name)
    if status:
        if status not in TASK.statuses:
            raise Invalid(f"Unknown task status: {status[:40]}. Use: {', '.join(sorted(TASK.statuses))}.")
        tasks = tasks.filter(status=status)
    return _scan_newest(rows, SEARCHED_ROWS, Exists(tasks))


SCANNING_FILTERS: dict[str, Callable[[QuerySet[Run], Any], ScannedRuns]] = {
    "least_ms": _scan_duration("gte"),
    "most_ms": _scan_duration("lte"),
    "task": _scan_task,
    "error": _scan_reason,
    "inside": _scan_document,
}
