"""The tasks of a group with their attempts: narrow, in two queries, whatever their number."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...models import StandaloneTask

MOST = 20_000
"""Tasks that are looked at together; of a larger group one part after another, in the order of their ids."""
URGENCY = ("FAILED", "TIMED_OUT", "CANCELED", "LEASED", "PENDING", "BLOCKED", "COMPLETED")
"""States in the order in which somebody wants to see their tasks."""
ENDED_BADLY = ("FAILED", "TIMED_OUT", "CANCELED")
NUMBERS = re.compile("([0-9]+)")
COLUMNS = (
    "task_id", "task__name", "task__status", "queue", "priority", "task__created_at", "deadline_at", "ever_resolved",
)  # fmt: skip


class MemberAttempt(NamedTuple):
    """One attempt, as much of it as is drawn."""

    number: int
    status: str
    scheduled_at: int
    started_at: int | None
    ended_at: int | None
    worker: str
    reason: str

    def waited(self, now: int) -> int:
        """How long it waited in its queue; nothing where it never stood in one."""
        until = self.started_at if self.started_at is not None else self.ended_at
        return (now if until is None else until) - self.scheduled_at

    def ran(self, now: int) -> int:
        """How long it was worked on."""
        if self.started_at is None:
            return 0
        return (now if self.ended_at is None else self.ended_at) - self.started_at


class GroupMember(NamedTuple):
    """One task of a group. `state`: what of its task's and its attempt's status says more."""

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
        """When it came to its turn for the first time."""
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
        """How long its attempts waited in queues, together."""
        return sum(each.waited(now) for each in self.attempts)

    def ran(self, now: int) -> int:
        """How long its attempts were worked on, together."""
        return sum(each.ran(now) for each in self.attempts)


def load_members(group_id: str, after: str = "") -> tuple[list[GroupMember], bool]:
    """The tasks of a group in the order of their ids, from behind one on; and whether there are more."""
    own = StandaloneTask.objects.filter(group_id=group_id, task_id__gt=after).order_by("task_id")
    rows = list(own.values_list(*COLUMNS)[: MOST + 1])
    has_more = len(rows) > MOST
    attempts = _load_attempts(group_id, after, rows[:MOST][-1][0]) if rows else {}
    return [_build_member(row, tuple(attempts.get(row[0], ()))) for row in rows[:MOST]], has_more


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
    state = attempts[-1].status if status == "ACTIVE" and attempts else status
    return GroupMember(id, name or id, state, *rest, attempts)


def most_urgent_first(members: Iterable[GroupMember], after: str = "", count: int = MOST) -> list[GroupMember]:
    """Some of them: what went wrong, then what goes on, then the rest, alike by name; from behind one on."""
    members_by_state: dict[str, list[GroupMember]] = {state: [] for state in URGENCY}
    begins_in, last = "", None
    for member in members:
        members_by_state.setdefault(member.state, []).append(member)
        if member.id == after:
            begins_in, last = member.state, sort_key(member)
    found: list[GroupMember] = []
    for state, state_members in members_by_state.items():
        # Only as many shelves are put in order as are shown: sorting thousands of names costs more than reading them.
        if (begins_in and state != begins_in) or len(found) >= count:
            continue
        begins_in = ""
        found += [each for each in sorted(state_members, key=sort_key) if last is None or sort_key(each) > last]
        last = None
    return found[:count]


def sort_key(member: GroupMember) -> tuple[tuple[int | str, ...], str]:
    """By name, as people sort names: `test 2` before `test 10`."""
    return natural_sort_key(member.name), member.id


def natural_sort_key(name: str) -> tuple[int | str, ...]:
    """A name in its words and its numbers, which are in the order of their values."""
    parts = NUMBERS.split(name.lower())
    return tuple(int(part[:18]) if place % 2 else part for place, part in enumerate(parts))
