"""The waiters of this process, by queue."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

TOPIC_PREFIX = "\0"
"""The prefix of broadcast topics. Names of queues never start with it."""


def broadcast_topic(name: str) -> str:
    """Return the topic that notifies all waiters under this name, instead of one of them."""
    return f"{TOPIC_PREFIX}{name}"


class Waiter:
    """One waiter, for one queue or several."""

    def __init__(self) -> None:
        self._notified = Event()

    @property
    def was_notified(self) -> bool:
        """Return True if there is an unconsumed notification."""
        return self._notified.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for a notification, at most `seconds`, and consume it. Returns True if there was one."""
        woken = self._notified.wait(seconds)
        self._notified.clear()
        return woken

    def notify(self) -> None:
        self._notified.set()


class WaiterRegistry:
    """All waiters of a process. New work wakes the waiter that has waited longest; a broadcast wakes all."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[str, deque[Waiter]] = {}
        self._count = 0
        self.is_closing = False

    @property
    def count(self) -> int:
        """Return the number of waiters."""
        return self._count

    @contextmanager
    def subscribe(self, *queues: str) -> Iterator[Waiter]:
        """Subscribe to queues during the block."""
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
        """Wake one waiter for each entry of its queue. Returns the entries that other processes must receive.

        These are the entries without a waiter in this process, and all broadcasts.
        """
        with self._lock:
            return [queue for queue in queues if not self._wake(queue)]

    def wake_all(self) -> None:
        """Wake every waiter, because notifications may have been missed."""
        with self._lock:
            for queue_waiters in self._queues.values():
                for waiter in queue_waiters:
                    waiter.notify()

    def close(self) -> None:
        """Wake every waiter and refuse new ones, because this process is about to stop."""
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
        # A notification that arrived after the end of the wait belongs to the next waiter.
        elif waiter.was_notified:
            self._wake_one(queue)


WAITERS = WaiterRegistry()
