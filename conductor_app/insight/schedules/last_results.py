"""The last results of several schedules, for the list of schedules."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import OuterRef, Q, Subquery

from ...models import Run, ScheduleExecution

MAX_RESULTS = 12


@dataclass(frozen=True, slots=True)
class SlotResult:
    """A past slot: its time, its state, and its run with the status. A removed run has no status."""

    at: int
    state: str
    run_id: str
    status: str


def oldest_shown_slot() -> Subquery:
    """Return the time of the MAX_RESULTS-th newest slot of a schedule, to annotate schedules; NULL if it has fewer."""
    slots = ScheduleExecution.objects.filter(schedule_name=OuterRef("name")).order_by("-slot_at")
    return Subquery(slots.values("slot_at")[MAX_RESULTS - 1 : MAX_RESULTS])


def last_results(oldest: Mapping[str, int | None]) -> dict[str, Sequence[SlotResult]]:
    """Return the last results of schedules by name, oldest first. `oldest`: the time of the oldest slot of each."""
    if not oldest:
        return {}
    each_since = [Q(schedule_name=name, slot_at__gte=since or 0) for name, since in oldest.items()]
    rows = ScheduleExecution.objects.filter(reduce(or_, each_since)).order_by("slot_at", "pk")
    values = list(rows.values_list("schedule_name", "slot_at", "state", "run_id"))
    statuses = _run_statuses([run_id for _, _, _, run_id in values if run_id])
    found = defaultdict(list)
    for name, at, state, run_id in values:
        found[name].append(SlotResult(at, state, run_id, statuses.get(run_id, "")))
    return {name: results[-MAX_RESULTS:] for name, results in found.items()}


def _run_statuses(ids: Collection[str]) -> dict[str, str]:
    return dict(Run.objects.filter(pk__in=ids).values_list("pk", "status")) if ids else {}
