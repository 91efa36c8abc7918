"""Task groups for the pages: their progress, their first failure, and their tasks, the most urgent ones first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Max, Min, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce

from ...runs.models import Attempt
from ..models import StandaloneTask, StandaloneTaskQuerySet

URGENCY = ("FAILED", "TIMED_OUT", "CANCELED", "LEASED", "PENDING", "BLOCKED", "COMPLETED")
"""States by urgency, most urgent first."""
ENDED_BADLY = ("FAILED", "TIMED_OUT", "CANCELED")


def tasks_of_group(group_id: str, state: str = "", name_part: str = "") -> StandaloneTaskQuerySet:
    """Return the tasks of a group, the most urgent ones first, each with its `state` as pages show it."""
    last = Attempt.objects.filter(pk=OuterRef("task__attempt_id")).values("status")[:1]
    shown = Case(When(task__status="ACTIVE", then=Coalesce(Subquery(last), F("task__status"))), default="task__status")
    rows = StandaloneTask.objects.filter(group_id=group_id).annotate(state=shown)
    if state:
        rows = rows.filter(state=state)
    if name_part:
        rows = rows.filter(task__name__icontains=name_part)
    places = [When(state=name, then=Value(place)) for place, name in enumerate(URGENCY)]
    urgency = Case(*places, default=Value(len(URGENCY)), output_field=IntegerField())
    return rows.order_by(urgency, "task__name", "pk")


def first_failure(group_id: str) -> tuple[str, str] | None:
    """Return the name and the reason of the task of a group that failed first, or None."""
    last = Attempt.objects.filter(task__standalone__group_id=group_id, task__attempt_id=F("pk"), ended_at__isnull=False)
    bad = last.filter(task__status__in=ENDED_BADLY).order_by("ended_at", "task_id")
    row = bad.values_list("task_id", "task__name", "task__status", "reason").first()
    return (row[1] or row[0], row[3] or row[2].lower()) if row else None


def group_times(group_id: str) -> dict[str, Any]:
    """Return `began_at` and `ended_at` of a group, in milliseconds; None before its first attempt or end."""
    attempts = Attempt.objects.filter(task__standalone__group_id=group_id)
    return attempts.aggregate(began_at=Min("scheduled_at"), ended_at=Max("ended_at"))


def open_deadlines(group_id: str) -> dict[str, Any]:
    """Return the `first` and the `last` deadline of the open tasks of a group, or None for both."""
    left = StandaloneTask.objects.filter(group_id=group_id, task__status__in=("BLOCKED", "ACTIVE"))
    return left.aggregate(first=Min("deadline_at"), last=Max("deadline_at"))


MAX_DETAILED = 5_000
"""Tasks of a list of groups that are counted by state. Larger groups show only their number of resolved tasks."""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """Number of tasks of a group, of resolved tasks, and, if counted, of tasks by state."""

    total: int = 0
    resolved: int = 0
    states: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_resolved(self) -> bool:
        return self.resolved == self.total

    @property
    def failed(self) -> int:
        return sum(self.states.get(state, 0) for state in ENDED_BADLY)

    @property
    def share(self) -> int:
        """Return the percentage of resolved tasks, rounded down, so that 100 means all."""
        return 100 * self.resolved // self.total if self.total else 0

    @property
    def parts(self) -> list[tuple[str, int]]:
        """Return the states that occur with their counts, failures first."""
        return [(state, self.states[state]) for state in URGENCY if self.states.get(state)]


def group_progress(group_id: str) -> GroupProgress:
    """Return the progress of one group, with counts by state."""
    states = _count_states([group_id]).get(group_id, {})
    resolved = sum(count for state, count in states.items() if state in ("COMPLETED", *ENDED_BADLY))
    return GroupProgress(sum(states.values()), resolved, states)


def groups_progress(group_ids: Iterable[str]) -> dict[str, GroupProgress]:
    """Return the progress of several groups. Only small groups have counts by state, which keeps the list fast."""
    own = StandaloneTask.objects.filter(group_id__in=list(group_ids)).order_by().values_list("group_id")
    counted = own.annotate(total=Count("pk"))
    totals = dict(counted)
    unresolved = dict(counted.filter(ever_resolved=False))
    states = _count_states(_small_groups(totals))
    return {id: GroupProgress(total, total - unresolved.get(id, 0), states.get(id, {})) for id, total in totals.items()}


def _small_groups(totals: Mapping[str, int]) -> list[str]:
    """Return the smallest groups whose tasks together are at most MAX_DETAILED."""
    chosen, left = [], MAX_DETAILED
    for id, total in sorted(totals.items(), key=lambda each: each[1]):
        left -= total
        if left < 0:
            break
        chosen.append(id)
    return chosen


def _count_states(group_ids: Iterable[str]) -> dict[str, dict[str, int]]:
    own = StandaloneTask.objects.filter(group_id__in=list(group_ids)).order_by()
    found: dict[str, dict[str, int]] = {}
    for id, status, count in own.values_list("group_id", "task__status").annotate(count=Count("pk")):
        found.setdefault(id, {})[status] = count
    # An active task is either pending or in progress. Its attempt says which.
    leased = own.filter(Q(task__status="ACTIVE", task__attempts__status="LEASED")).values_list("group_id")
    with_workers = dict(leased.annotate(count=Count("pk")))
    for id, states in found.items():
        active, out = states.pop("ACTIVE", 0), with_workers.get(id, 0)
        states |= {"PENDING": active - out, "LEASED": out}
    return found
