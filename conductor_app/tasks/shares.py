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

from ..db.named_statements import load_statements
from ..db.statements import execute, execute_together, fetch, serialize
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
    """Return the candidates, with those whose turn it is in place of the ones with fairness keys, and lock them.

    The candidates with a key are as many as the queue gives to keys now; the keys decide which attempts these are.
    `full`: names whose limits are reached.
    """
    counts = Counter(each.priority for each in candidates if each.fairness_key)
    chosen = [each for each in candidates if not each.fairness_key]
    for priority, count in counts.items():
        chosen += _Turns(queue, priority, now, full).take(count)
    return sorted(chosen, key=lambda candidate: -candidate.priority) if len(counts) > 1 else chosen


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
    """The turns of the keys of a queue and a priority, in a transaction that no other claim of the queue shares."""

    def __init__(self, queue: str, priority: int, now: int, full: Sequence[str]) -> None:
        self._place = {"queue": queue, "priority": priority}
        self._now, self._full = now, full or [""]
        self._search = _searches.value.setdefault(queue, {}).setdefault(priority, KeySearch())

    def take(self, count: int) -> list[Candidate]:
        """Return the attempts whose turn it is, at most `count`."""
        was_due = self._search.is_due(self._now)
        if was_due:
            self._add_keys()
        chosen = self._take(count)
        if not chosen and not was_due:
            self._add_keys()
            chosen = self._take(count)
        # If there were fewer attempts than asked for, the next claim searches for keys that have none yet.
        self._search.claims_left = self._search.claims_left - count if len(chosen) == count else 0
        return chosen

    def _add_keys(self) -> None:
        execute(*SHARES_SQL["add_keys"].bind(**self._place, now=self._now))
        [(count,)] = fetch(*SHARES_SQL["count_shares"].bind(**self._place))
        self._search.claims_left, self._search.again_at = count, self._now + count

    def _take(self, count: int) -> list[Candidate]:
        turns = fetch(*SHARES_SQL["first_shares"].bind(**self._place, count=count + SPARE_KEYS))
        heapify(turns)
        waiting: dict[str, Iterator[Candidate]] = {}
        chosen: list[Candidate] = []
        gone = []
        while turns and len(chosen) < count:
            place, _, key = heappop(turns)
            is_first = key not in waiting
            if is_first:
                waiting[key] = self._lock_attempts(key, -(-(count - len(chosen)) // (len(turns) + 1)))
            if (attempt := next(waiting[key], None)) is not None:
                chosen.append(attempt)
                heappush(turns, (place + cost_of(attempt.fairness_weight), self._now, key))
            elif is_first and not self._has_due_attempt(key):
                gone.append(key)
        if gone:
            execute(*SHARES_SQL["remove_shares"].bind(**self._place, keys=gone))
        return chosen

    def _lock_attempts(self, key: str, count: int) -> Iterator[Candidate]:
        """Lock and yield the due attempts of a key, `count` with each statement."""
        facts = {**self._place, "key": key, "now": self._now, "full": self._full, "count": count}
        after_at, after_id = -1, ""
        while True:
            rows = fetch(*SHARES_SQL["lock_attempts_of_key"].bind(**facts, after_at=after_at, after_id=after_id))
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
