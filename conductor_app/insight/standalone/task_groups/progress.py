"""Progress of task groups: number of tasks by state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Count, Q

from ....models import StandaloneTask
from .members import ENDED_BADLY, URGENCY

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
