"""Filters of runs that no index answers: the newest of what the other filters leave are looked at one by one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet

from ...core.errors import Invalid
from ...core.states import TASK
from ...models import Run, Task
from ..search import RUNS, Clause, QueryValue, Search, SearchQuery

LOOKED_AT, REASONS = 20_000, 10_000
"""How many of the newest runs are looked at."""


@dataclass(frozen=True, slots=True)
class ScannedRuns:
    """What was found among the newest so many: those since a moment; None if all were looked at."""

    rows: QuerySet[Run]
    number: int
    since: int | None


def _newest_runs(rows: QuerySet[Run], number: int) -> ScannedRuns:
    begun = rows.order_by("-created_at").values_list("created_at", flat=True)[number : number + 1].first()
    return ScannedRuns(rows if begun is None else rows.filter(created_at__gte=begun), number, begun)


def _scan_newest(rows: QuerySet[Run], number: int, *conditions: Any, **more: Any) -> ScannedRuns:
    newest = _newest_runs(rows, number)
    return ScannedRuns(newest.rows.filter(*conditions, **more), number, newest.since)


def _scan_reason(rows: QuerySet[Run], text: str) -> ScannedRuns:
    """Words of the reason, of the newest that have one."""
    return _scan_newest(rows.exclude(reason=""), REASONS, reason__icontains=text)


def _scan_document(rows: QuerySet[Run], said: str) -> ScannedRuns:
    """`input.customer.id=42`: a place inside the input or the output, and the value there."""
    path, sign, value = said.partition("=")
    path = path.strip()
    if not sign or not path.startswith(("input.", "output.", "variables.", "input[", "output[", "variables[")):
        raise Invalid("A value inside a document is asked for like this: input.customer.id=42")
    query = SearchQuery(RUNS, extra_clauses=[Clause(path, "=", (QueryValue(value.strip(), 0),), 0)])
    found_search = Search(rows, query)
    return ScannedRuns(found_search.hits(), query.scan_limit or 0, found_search.since)


def _scan_duration(operator: str) -> Callable[[QuerySet[Run], int], ScannedRuns]:
    def found(rows: QuerySet[Run], span: int) -> ScannedRuns:
        # What has not ended is no reason to look at each run to find where the newest begin: an index tells that.
        return _scan_newest(rows, LOOKED_AT, **{f"ended_at__{operator}": F("created_at") + span})

    return found


def _scan_task(rows: QuerySet[Run], ref: str) -> ScannedRuns:
    """With a task of this reference, in a status behind a colon: `charge`, `charge:FAILED`."""
    name, _, status = ref.partition(":")
    tasks = Task.objects.filter(run_id=OuterRef("pk"), ref=name)
    if status:
        if status not in TASK.statuses:
            raise Invalid(f"There is no status {status[:40]} of tasks; there are: {', '.join(sorted(TASK.statuses))}.")
        tasks = tasks.filter(status=status)
    return _scan_newest(rows, LOOKED_AT, Exists(tasks))


SCANNING_FILTERS: dict[str, Callable[[QuerySet[Run], Any], ScannedRuns]] = {
    "least_ms": _scan_duration("gte"),
    "most_ms": _scan_duration("lte"),
    "task": _scan_task,
    "error": _scan_reason,
    "inside": _scan_document,
}
