"""Tasks of a group with their attempts, read with few columns in two queries."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ....models import StandaloneTask
from ..task_status import displayed_state

LIMIT = 20_000
"""Tasks that are read at once. Larger groups are read in parts, in the order of their ids."""
URGENCY = ("FAILED", "TIMED_OUT", "CANCELED", "LEASED", "PENDING", "BLOCKED", "COMPLETED")
"""States by urgency, most urgent first."""
ENDED_BADLY = ("FAILED", "TIMED_OUT", "CANCELED")
NUMBERS = re.compile("([0-9]+)")
COLUMNS = (
    "task_id", "task__name", "task__status", "queue", "priority", "task__created_at", "deadline_at", "ever_resolved",
)  # fmt: skip


class MemberAttempt(NamedTuple):
    """The columns of one attempt that pages show."""

    number: int
    status: str
    scheduled_at: int
    started_at: int | None
    ended_at: int | None
    worker: str
    reason: str

    def waited(self, now: int) -> int:
        """Return the time in the queue, in milliseconds."""
        until = self.started_at if self.started_at is not None else self.ended_at
        return (now if until is None else until) - self.scheduled_at

    def ran(self, now: int) -> int:
        """Return the time in progress, in milliseconds."""
        if self.started_at is None:
            return 0
        return (now if self.ended_at is None else self.ended_at) - self.started_at


class GroupMember(NamedTuple):
    """One task of a group. `state`: status of the last attempt if the task is active, else of the task."""

    id: str
    name: str
    state: str
    queue: str
    priority: int
    created_at: int
    deadline_at: int
    ever_resolved: bool
    attempts: tuple[MemberAttempt, ...]

    @property
    def last(self) -> MemberAttempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def began_at(self) -> int | None:
        """Return when the first attempt was scheduled, or None if there is none."""
        return self.attempts[0].scheduled_at if self.attempts else None

    @property
    def ended_at(self) -> int | None:
        return self.last.ended_at if self.last else None

    @property
    def is_open(self) -> bool:
        return self.last is None or self.last.ended_at is None

    @property
    def ended_badly(self) -> bool:
        return self.state in ENDED_BADLY

    def waited(self, now: int) -> int:
        """Return the total time of its attempts in queues, in milliseconds."""
        return sum(each.waited(now) for each in self.attempts)

    def ran(self, now: int) -> int:
        """Return the total time of its attempts in progress, in milliseconds."""
        return sum(each.ran(now) for each in self.attempts)


def load_members(group_id: str, after: str = "") -> tuple[list[GroupMember], bool]:
    """Return tasks of a group in the order of their ids, after an id, and True if there are more."""
    own = StandaloneTask.objects.filter(group_id=group_id, task_id__gt=after).order_by("task_id")
    rows = list(own.values_list(*COLUMNS)[: LIMIT + 1])
    has_more = len(rows) > LIMIT
    attempts = _load_attempts(group_id, after, rows[:LIMIT][-1][0]) if rows else {}
    return [_build_member(row, tuple(attempts.get(row[0], ()))) for row in rows[:LIMIT]], has_more


def _load_attempts(group_id: str, after: str, until: str) -> dict[str, list[MemberAttempt]]:
    own = StandaloneTask.objects.filter(group_id=group_id, task_id__gt=after, task_id__lte=until)
    columns = ("number", "status", "scheduled_at", "started_at", "ended_at", "worker", "reason")
    found: dict[str, list[MemberAttempt]] = {}
    attempts = own.filter(task__attempts__isnull=False).values_list(
        "task_id", *(f"task__attempts__{column}" for column in columns)
    )
    for task_id, *rest in attempts.order_by("task_id", "task__attempts__number").iterator(chunk_size=5_000):
        found.setdefault(task_id, []).append(MemberAttempt(*rest))
    return found


def _build_member(row: tuple, attempts: tuple[MemberAttempt, ...]) -> GroupMember:
    id, name, status, *rest = row
    state = displayed_state(status, attempts[-1].status if attempts else None)
    return GroupMember(id, name or id, state, *rest, attempts)


def most_urgent_first(members: Iterable[GroupMember], after: str = "", count: int = LIMIT) -> list[GroupMember]:
    """Return `count` members by urgency of their state and by name, after the member with the id `after`."""
    members_by_state: dict[str, list[GroupMember]] = {state: [] for state in URGENCY}
    begins_in, last = "", None
    for member in members:
        members_by_state.setdefault(member.state, []).append(member)
        if member.id == after:
            begins_in, last = member.state, sort_key(member)
    found: list[GroupMember] = []
    for state, state_members in members_by_state.items():
        # Only the states that are returned are sorted: sorting thousands of names costs more than reading them.
        if (begins_in and state != begins_in) or len(found) >= count:
            continue
        begins_in = ""
        found += [each for each in sorted(state_members, key=sort_key) if last is None or sort_key(each) > last]
        last = None
    return found[:count]


def sort_key(member: GroupMember) -> tuple[tuple[int | str, ...], str]:
    """Return a sort key by name in natural order: `test 2` before `test 10`."""
    return natural_sort_key(member.name), member.id


def natural_sort_key(name: str) -> tuple[int | str, ...]:
    """Split a name into texts and numbers, so that numbers sort by value."""
    parts = NUMBERS.split(name.lower())
    return tuple(int(part[:18]) if place % 2 else part for place, part in enumerate(parts))
