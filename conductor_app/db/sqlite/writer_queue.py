"""The order in which the transactions of a SQLite database begin.

SQLite lets one transaction write at a time. The others wait in its busy handler, which sleeps longer and longer and has
no order: with 20 writers, single ones wait for seconds. The order here only decides who waits: SQLite's lock is still
what keeps transactions apart, so that a program that knows no order does no harm.
"""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from functools import cache
from threading import Lock
from time import monotonic, sleep

POLL_SECONDS = 0.001


class WriterQueue:
    """The writers of this process to one database. Each waits until those before it have ended their transactions.

    `waiting`: the writers whose turn comes, the first one first.
    """

    def __init__(self, database: str) -> None:
        self._lock = Lock()
        self._is_taken = False
        self.waiting: deque[Lock] = deque()
        # A database in memory belongs to one process.
        is_file = database != ":memory:" and "mode=memory" not in database
        self._file = os.open(f"{database}-queue", os.O_RDWR | os.O_CREAT, 0o600) if is_file else None

    def acquire(self, seconds: float) -> bool:
        """Wait for a turn. Returns False if it has not come within this time."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            turn = Lock()
            turn.acquire()
            self.waiting.append(turn)
        if turn.acquire(timeout=seconds):
            return True
        with self._lock:
            if turn in self.waiting:
                self.waiting.remove(turn)
                return False
            # The turn came between the two statements.
            return True

    def release(self) -> None:
        """Give the turn to the writer that has waited longest."""
        with self._lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self._is_taken = False

    @contextmanager
    def next_of_processes(self, seconds: float) -> Iterator[None]:
        """Begin a transaction in the block, for the writer whose turn it is.

        Of the processes that share the file, one waits for SQLite's lock at a time. Otherwise a process whose writers
        follow one another leaves no gap for the others. After this time, the block is executed without that order.
        """
        if self._file is None:
            yield
            return
        end = monotonic() + seconds
        while not self._lock_file(self._file) and monotonic() < end:
            sleep(POLL_SECONDS)
        try:
            yield
        finally:
            flock(self._file, LOCK_UN)

    def _lock_file(self, file: int) -> bool:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
        return True


@cache
def queue_of(database: str) -> WriterQueue:
    """Return the queue that all connections of this process to the database share."""
    return WriterQueue(database)


# The writers of the parent process do not exist in a forked one.
os.register_at_fork(after_in_child=queue_of.cache_clear)
