"""Record of the workers that poll each queue, for the selection of domains and the admin pages."""

import logging
from threading import Lock

from ... import clock, process_state
from ...models import Poller

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
    """Record a poll of a worker."""
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
