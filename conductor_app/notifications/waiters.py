"""Who waits in this process, and for which queue."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

TOPIC_PREFIX = "\0"
"""What the names of news begin with, and the name of no queue does."""


def broadcast_topic(name: str) -> str:
    """What is announced where something has changed for all who wait under this name, not work for one of them."""
    return f"{TOPIC_PREFIX}{name}"


class Waiter:
    """One waiter, at one queue or at several."""

    def __init__(self) -> None:
        self._notified = Event()

    @property
    def was_notified(self) -> bool:
        """Whether there is a hint that no wait has used."""
        return self._notified.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep until there is a hint, or for so long; True when there was one. It is used up by this."""
        woken = self._notified.wait(seconds)
        self._notified.clear()
        return woken

    def notify(self) -> None:
        self._notified.set()


class WaiterRegistry:
    """All waiters of a process. A hint of work wakes one of them, the one that has waited longest; news wakes all."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[str, deque[Waiter]] = {}
        self._count = 0
        self.is_closing = False

    @property
    def count(self) -> int:
        """How many wait, or are about to."""
        return self._count

    @contextmanager
    def subscribe(self, *queues: str) -> Iterator[Waiter]:
        """An ear at the queues while the block runs."""
        waiter = Waiter()
        with self._lock:
            for queue in queues:
                self._queues.setdefault(queue, deque()).append(waiter)
            self._count += 1
        try:
            yield waiter
        finally:
            with self._lock:
                self._count -= 1
                for queue in queues:
                    self._leave(queue, waiter)

    def wake(self, queues: Iterable[str]) -> list[str]:
        """Wake one waiter for each mention of its queue; returns those of which other processes should hear too.

        These are the queues at which nobody here was left to wake, and all news.
        """
        with self._lock:
            return [queue for queue in queues if not self._wake(queue)]

    def wake_all(self) -> None:
        """Wake every waiter: hints may have been missed."""
        with self._lock:
            for queue_waiters in self._queues.values():
                for waiter in queue_waiters:
                    waiter.notify()

    def close(self) -> None:
        """Wake every waiter for the last time: this process is about to end."""
        self.is_closing = True
        self.wake_all()

    def _wake(self, queue: str) -> bool:
        if not queue.startswith(TOPIC_PREFIX):
            return self._wake_one(queue)
        for waiter in self._queues.get(queue, ()):
            waiter.notify()
        return False

    def _wake_one(self, queue: str) -> bool:
        for waiter in self._queues.get(queue, ()):
            if not waiter.was_notified:
                waiter.notify()
                return True
        return False

    def _leave(self, queue: str, waiter: Waiter) -> None:
        queue_waiters = self._queues[queue]
        queue_waiters.remove(waiter)
        if not queue_waiters:
            del self._queues[queue]
        # A hint that came when the wait was already over belongs to whoever waits next.
        elif waiter.was_notified:
            self._wake_one(queue)


WAITERS = WaiterRegistry()
