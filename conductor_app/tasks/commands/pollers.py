"""Records of workers that poll, and lookups of queues for the polls that wait.

The records select domains and are on pages. One lookup serves all waiting polls of the process: it finds attempts whose
notification was lost, and those that become visible or pass a gate later.
"""

import logging
from threading import Event, Lock, Thread
from time import monotonic, sleep

from ...db.database import connection
from ...db.transient_errors import discard_broken_connection
from ...notifications import WAITERS, WaiterRegistry
from ...utils import clock, process_state
from .. import store
from ..models import Poller

log = logging.getLogger(__name__)

EVERY_MS = 1000
"""The minimum interval between two records of a worker's polls of one queue, and between two writes of the buffer."""
LONGEST_BUFFERED_MS = 2000
"""The interval after which a poll writes the buffer, if no waiting poll has caused a lookup in the meantime."""
OUTDATED_MS = 10_000
"""The age of a buffered poll that is not written any more: another process may have written a later one."""
MAX_REMEMBERED = 10_000

Polled = tuple[str, str, str]
"""The task type, the domain and the worker of a poll."""


class PollerBuffer:
    """The polls of this process that are not written yet, and the times of its last polls.

    The first poll of a worker is written at once. Later ones only move its time, so they are collected and written
    together, which saves a transaction per poll.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._recorded_at: dict[Polled, int] = {}
        self._unwritten: dict[Polled, int] = {}
        self._written_at = 0

    def add(self, polled: Polled, now: int) -> bool:
        """Add a poll. Returns True if the buffer must be written now."""
        with self._lock:
            recorded_at = self._recorded_at.get(polled)
            if recorded_at is not None and abs(now - recorded_at) < EVERY_MS:
                return False
            if len(self._recorded_at) > MAX_REMEMBERED:
                self._recorded_at.clear()
            self._recorded_at[polled] = self._unwritten[polled] = now
            return recorded_at is None or abs(now - self._written_at) >= LONGEST_BUFFERED_MS

    def is_due(self, now: int) -> bool:
        """Return True if the buffer has polls, and the last write is EVERY_MS ago."""
        return bool(self._unwritten) and abs(now - self._written_at) >= EVERY_MS

    def take(self, now: int) -> list[tuple[Polled, int]]:
        """Remove and return the polls with their times, in an order that all processes share."""
        with self._lock:
            unwritten, self._unwritten, self._written_at = self._unwritten, {}, now
        return sorted((polled, at) for polled, at in unwritten.items() if now - at < OUTDATED_MS)


_buffer = process_state.slot(PollerBuffer)


def record_poll(task_type: str, domain: str, worker: str) -> None:
    if _buffer.value.add((task_type, domain, worker), clock.now()):
        write_polls()


def write_polls_if_due() -> None:
    """Write the buffered polls, once per EVERY_MS."""
    if _buffer.value.is_due(clock.now()):
        write_polls()


def write_polls() -> None:
    """Write the buffered polls in one statement. An error is logged and ignored."""
    polls = _buffer.value.take(clock.now())
    try:
        Poller.objects.bulk_create(
            [
                Poller(task_type=task_type, domain=domain, worker=worker, polled_at=polled_at)
                for (task_type, domain, worker), polled_at in polls
            ],
            update_conflicts=True,
            unique_fields=["task_type", "domain", "worker"],
            update_fields=["polled_at"],
        )
    except Exception:
        # A poll does not fail for it. `remove_worker` may delete the same rows in another order.
        log.exception("polls_not_recorded")


LOOKUP_SECONDS = 1.0
"""Seconds after which each queue is looked up again: the longest delay by a lost notification."""
PAUSE_SECONDS = 0.02
"""The minimum interval between two lookups. Requests within it share one."""
MOST_CLAIMABLE = 1000
STANDALONE_PREFIX = "\1"
"""The prefix of the queues of standalone tasks among those of waiting polls. A task type may have the same name."""


def standalone_queue(name: str) -> str:
    """Return the name under which claims of standalone tasks wait for a queue."""
    return f"{STANDALONE_PREFIX}{name}"


class QueueLookups:
    """Looks up queues when they are due, and wakes polls for what it finds."""

    def __init__(self, waiters: WaiterRegistry) -> None:
        self._waiters, self._lock = waiters, Lock()
        self._due_at: dict[str, float] = {}
        self._repeated: set[str] = set()
        self._next_round_at = 0.0
        self._requested = Event()
        self._thread: Thread | None = None

    def watch(self, queue: str) -> None:
        """Look the queue up regularly while polls wait for it, and soon if that is new."""
        with self._lock:
            if queue in self._due_at:
                return
            self._due_at[queue] = 0.0
        self._request()

    def repeat(self, queue: str) -> None:
        """Look the queue up soon, because a poll has claimed less than announced. The rest may be for other polls."""
        with self._lock:
            self._repeated.add(queue)
        self._request()

    def look_up(self, moment: float) -> float | None:
        """Look up the queues that are due. Returns the time of the next lookup; None if no poll waits.

        `moment`: the monotonic time in seconds, like the result.
        """
        now, starts_round = clock.now(), moment >= self._next_round_at
        if starts_round:
            self._next_round_at = moment + LOOKUP_SECONDS
            self._waiters.wake_disconnected()
        with self._lock:
            waiting = self._waiters.waiting_queues()
            self._due_at = {queue: at for queue, at in self._due_at.items() if queue in waiting}
            repeated, self._repeated = self._repeated & waiting.keys(), set()
        if not waiting:
            self._waiters.discard_lookups()
            return None
        timed = {queue for queue in waiting if starts_round or self._due_at.get(queue, moment) <= moment}
        visible_at = self._find_next_visible(timed | repeated)
        for queue in timed | repeated:
            if visible_at.get(queue, now + 1) <= now:
                claimable = _count_claimable(queue, now, waiting[queue])
                self._waiters.offer(queue, claimable, repeated=queue not in timed)
                due_at = self._next_round_at
            else:
                due_at = moment + (visible_at[queue] - now) / 1000 if queue in visible_at else self._next_round_at
                self._waiters.mark_empty(queue, min(due_at, self._next_round_at + PAUSE_SECONDS))
            self._due_at[queue] = due_at
        with self._lock:
            return min(self._next_round_at, *self._due_at.values())

    def _find_next_visible(self, queues: set[str]) -> dict[str, int]:
        """Return the time at which the next attempt of each queue becomes visible, if there is one."""
        self._waiters.begin_lookup(queues)
        names = {queue: queue.removeprefix(STANDALONE_PREFIX) for queue in queues}
        found = store.find_next_visible(set(names.values())) if queues else {}
        return {queue: found[name] for queue, name in names.items() if name in found}

    def _request(self) -> None:
        self._requested.set()
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = Thread(target=self._look_up_forever, name="queue-lookups", daemon=True)
                    self._thread.start()

    def _look_up_forever(self) -> None:
        next_at: float | None = None
        while True:
            self._requested.wait(None if next_at is None else max(next_at - monotonic(), 0.0))
            self._requested.clear()
            try:
                next_at = self.look_up(monotonic())
                write_polls_if_due()
            except Exception as error:
                # The database may be unreachable for a while.
                log.warning("queue_lookup_failed", extra={"error": f"{type(error).__name__}: {error}"})
                discard_broken_connection()
                next_at = monotonic() + LOOKUP_SECONDS
            finally:
                release_connection()
            sleep(PAUSE_SECONDS)


def _count_claimable(queue: str, now: int, most: int) -> int:
    most = min(most, MOST_CLAIMABLE)
    if queue.startswith(STANDALONE_PREFIX):
        return store.count_claimable_standalone(queue.removeprefix(STANDALONE_PREFIX), now, most)
    return store.count_claimable(queue, now, most)


def release_connection() -> None:
    """Close the database connection before a wait, so that a waiting poll holds none."""
    # An open SQLite file costs nothing, but opening it every second does.
    if connection.vendor != "sqlite" and not connection.in_atomic_block:
        connection.close()


LOOKUPS = process_state.slot(lambda: QueueLookups(WAITERS.value))
