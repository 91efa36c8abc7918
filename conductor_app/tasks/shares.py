"""Turns of fairness keys: which attempts a claim takes from a queue whose tasks have fairness keys.

Each key of a queue and a priority has a place, a virtual time. A claim takes the oldest due attempt of the key with the
lowest place, and then adds the cost of the task to the place: a constant, divided by the weight. So a key with the
weight 3 is served three times as often as one with the weight 1 while both have due attempts. A key that had none
begins at the lowest place: it is served next, and does not catch up on the turns that it did not use.

Only claims write places, one claim of a queue at a time. Whatever has inserted an attempt, claims find the keys of due
attempts in an index. This search reads each key once. It is repeated after as many claimed attempts as there are keys,
or after as many milliseconds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ..db.statements import execute, execute_together, fetch, load_statements, serialize
from ..utils import process_state
from ..utils.process_state import Slot
from .gates import open_condition

SHARES_SQL = load_statements("tasks/shares", gates=open_condition())
COST = 1_000_000
"""The cost of a task with the weight 1."""
SPARE_KEYS = 20
"""The number of keys that a claim reads besides those that it may serve, because some may have no due attempts."""
IDLE_MS = 3_600_000
"""The time after which the turn of a key that no claim has served is removed."""
MAX_IDLE = 1_000


class Candidate(NamedTuple):
    """A due attempt with its limits: those of the current task definition, or its own if there is none."""

    id: str
    name: str
    concurrent_limit: int
    rate_count: int
    rate_seconds: int
    publishes_start: bool
    priority: int
    fairness_key: str
    fairness_weight: float

    @property
    def is_limited(self) -> bool:
        return self.concurrent_limit > 0 or (self.rate_count > 0 and self.rate_seconds > 0)

    @property
    def is_plain(self) -> bool:
        """Return True if one statement claims the attempt: no limit, no fairness key, and no published start."""
        return not (self.is_limited or self.publishes_start or self.fairness_key)


@dataclass(slots=True)
class KeySearch:
    """When the keys of a queue and a priority are searched again: after a number of claimed attempts, or at a time."""

    claims_left: int = 0
    again_at: int = 0

    def is_due(self, now: int) -> bool:
        return self.claims_left <= 0 or now >= self.again_at


_searches: Slot[dict[str, dict[int, KeySearch]]] = process_state.slot(dict)
"""The searches by queue and priority, of the queues where this process has last seen fairness keys."""


def is_shared(queue: str) -> bool:
    """Return True if the last claim of this process has seen attempts with fairness keys in the queue."""
    return queue in _searches.value


def note_keys(queue: str, *, has_keys: bool) -> None:
    """Store whether the next attempts of the queue have fairness keys."""
    if has_keys:
        _searches.value.setdefault(queue, {})
    else:
        _searches.value.pop(queue, None)


def serialize_claims(queue: str) -> None:
    """Let no other claim choose attempts with fairness keys in this queue until the transaction ends."""
    serialize(f"shares:{queue}")


def share_out(queue: str, candidates: Sequence[Candidate], now: int, full: Sequence[str]) -> list[Candidate]:
    """Return the attempts to claim: as many as the candidates, by the turns of their keys. Those with a key are locked.

    `candidates`: the first attempts in dispatch order. One without a key is claimed when it is the first; while the
    first one has a key, the attempt whose turn it is comes instead. `full`: names whose limits are reached.
    """
    count = len(candidates)
    turns = {each.priority: _Turns(queue, each.priority, now, full, count) for each in candidates if each.fairness_key}
    attempts = {priority: one.attempts() for priority, one in turns.items()}
    chosen: dict[str, Candidate] = {}
    for first in candidates:
        if not first.fairness_key and len(chosen) < count:
            chosen[first.id] = first
        while first.fairness_key and first.id not in chosen and len(chosen) < count:
            if (following := next(attempts[first.priority], None)) is None:
                break
            chosen[following.id] = following
    for each in turns.values():
        each.remove_keys()
    return list(chosen.values())


def charge(queue: str, claimed: Iterable[Candidate], now: int) -> None:
    """Move the turns of the keys of claimed attempts back."""
    costs: Counter[tuple[int, str]] = Counter()
    for each in claimed:
        costs[each.priority, each.fairness_key] += cost_of(each.fairness_weight)
    execute_together(
        [
            SHARES_SQL["charge_share"].bind(queue=queue, priority=priority, key=key, cost=cost, now=now)
            for (priority, key), cost in sorted(costs.items())
        ]
    )


def cost_of(weight: float) -> int:
    return round(COST / weight)


class _Turns:
    """The turns of the keys of a queue and a priority, in a transaction that no other claim of the queue shares.

    `count`: how many attempts are asked for, at most.
    """

    def __init__(self, queue: str, priority: int, now: int, full: Sequence[str], count: int) -> None:
        self._place = {"queue": queue, "priority": priority}
        self._now, self._full, self._count = now, full, count
        self._search = _searches.value.setdefault(queue, {}).setdefault(priority, KeySearch())
        self._gone: list[str] = []

    def attempts(self) -> Iterator[Candidate]:
        """Yield the attempts by the turns of their keys, and lock them."""
        taken, was_due = 0, self._search.is_due(self._now)
        if was_due:
            self._add_keys()
        for attempt in self._take():
            taken += 1
            self._search.claims_left -= 1
            yield attempt
        if not taken and not was_due:
            self._add_keys()
            yield from self._take()
        # There may be keys that the last search has not found.
        self._search.claims_left = 0

    def remove_keys(self) -> None:
        """Remove the keys that were found without due attempts."""
        if self._gone:
            execute(*SHARES_SQL["remove_shares"].bind(**self._place, keys=self._gone))

    def _add_keys(self) -> None:
        execute(*SHARES_SQL["add_keys"].bind(**self._place, now=self._now))
        [(count,)] = fetch(*SHARES_SQL["count_shares"].bind(**self._place))
        self._search.claims_left, self._search.again_at = count, self._now + count

    def _take(self) -> Iterator[Candidate]:
        turns = fetch(*SHARES_SQL["first_shares"].bind(**self._place, count=self._count + SPARE_KEYS))
        heapify(turns)
        waiting: dict[str, Iterator[Candidate]] = {}
        taken = 0
        while turns:
            place, _, key = heappop(turns)
            is_first = key not in waiting
            if is_first:
                waiting[key] = self._lock_attempts(key, max(-(-(self._count - taken) // (len(turns) + 1)), 1))
            if (attempt := next(waiting[key], None)) is not None:
                taken += 1
                heappush(turns, (place + cost_of(attempt.fairness_weight), self._now + taken, key))
                yield attempt
            elif is_first and not self._has_due_attempt(key):
                self._gone.append(key)

    def _lock_attempts(self, key: str, count: int) -> Iterator[Candidate]:
        """Lock and yield the due attempts of a key, `count` with each statement."""
        statement = SHARES_SQL["lock_attempts_of_key_except" if self._full else "lock_attempts_of_key"]
        facts = {**self._place, "key": key, "now": self._now, "full": self._full, "count": count}
        after_at, after_id = -1, ""
        while True:
            rows = fetch(*statement.bind(**facts, after_at=after_at, after_id=after_id))
            for *columns, _visible_at in rows:
                yield Candidate(*columns)
            if len(rows) < count:
                return
            after_at, after_id = rows[-1][-1], rows[-1][0]

    def _has_due_attempt(self, key: str) -> bool:
        """Return True if the key has a due attempt that another transaction has locked, or that a limit holds."""
        return bool(fetch(*SHARES_SQL["find_due_attempt_of_key"].bind(**self._place, key=key, now=self._now)))


def remove_idle_shares(now: int) -> None:
    """Remove the turns of keys that no claim has served for an hour."""
    execute(*SHARES_SQL["remove_idle_shares"].bind(before=now - IDLE_MS, limit=MAX_IDLE))
