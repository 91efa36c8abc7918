"""The order in which callers get helper processes: in turns by key, so that slow scripts delay few others."""

from collections import Counter, deque
from collections.abc import Hashable
from threading import Event, Lock

MAX_TIMEOUTS = 4
SLOW_FROM = 2
MAX_KEYS = 1_000


class Ticket:
    """A place in the queue. `granted` is set when its caller may use a helper."""

    def __init__(self, key: Hashable) -> None:
        self.key, self.granted = key, Event()


class HelperQueue:
    """Grants `size` helpers to the callers that wait for them.

    A free helper goes to the waiting key with the fewest helpers; among equals, the one that was served longest ago. A
    key whose scripts keep exceeding their time limit is slow until others complete. A slow key gets one helper, and all
    slow keys together get all helpers but one. So a script waits for one time limit at most, unless many keys wait.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        # In the order of the turns.
        self._waiting: dict[Hashable, deque[Ticket]] = {}
        self._granted: Counter[Hashable] = Counter()
        self._timeouts: dict[Hashable, int] = {}

    def enter(self, key: Hashable) -> Ticket:
        """Return a new ticket, which is granted at once if a helper is free for its key."""
        ticket = Ticket(key)
        with self._lock:
            self._waiting.setdefault(key, deque()).append(ticket)
            self._grant()
        return ticket

    def leave(self, ticket: Ticket, has_timed_out: bool | None = None) -> None:
        """Return the helper of a ticket, or its place. `has_timed_out`: None if no script was evaluated."""
        with self._lock:
            if ticket.granted.is_set():
                self._granted -= Counter([ticket.key])
            else:
                self._remove(ticket)
            if has_timed_out is not None:
                self._count(ticket.key, has_timed_out)
            self._grant()

    def _grant(self) -> None:
        while self._granted.total() < self._size:
            eligible = [key for key in self._waiting if self._is_eligible(key)]
            if not eligible:
                return
            key = min(eligible, key=lambda each: self._granted[each])
            ticket = self._waiting[key][0]
            self._remove(ticket)
            if key in self._waiting:
                self._waiting[key] = self._waiting.pop(key)
            self._granted[key] += 1
            ticket.granted.set()

    def _remove(self, ticket: Ticket) -> None:
        tickets = self._waiting[ticket.key]
        tickets.remove(ticket)
        if not tickets:
            del self._waiting[ticket.key]

    def _is_eligible(self, key: Hashable) -> bool:
        if not self._is_slow(key):
            return True
        of_slow_keys = sum(count for each, count in self._granted.items() if self._is_slow(each))
        return not self._granted[key] and of_slow_keys < max(self._size - 1, 1)

    def _is_slow(self, key: Hashable) -> bool:
        return self._timeouts.get(key, 0) >= SLOW_FROM

    def _count(self, key: Hashable, has_timed_out: bool) -> None:
        count = min(self._timeouts.pop(key, 0) + (1 if has_timed_out else -1), MAX_TIMEOUTS)
        if count > 0:
            self._timeouts[key] = count
        if len(self._timeouts) > MAX_KEYS:
            # The key whose scripts ended longest ago.
            del self._timeouts[next(iter(self._timeouts))]
