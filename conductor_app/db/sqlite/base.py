"""The database backend: Django's, except that writers wait for one another in the order of their arrival.

SQLite lets one transaction write at a time. The others wait in its busy handler, which sleeps longer and longer and has
no order: with 20 writers, single ones wait for seconds. The order here only decides who waits: SQLite's lock is still
what keeps transactions apart, so that a program that knows no order does no harm.
"""

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from functools import cache, partial
from threading import Lock
from time import monotonic, sleep
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

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


WRITE = re.compile(r"INSERT|UPDATE|DELETE|WITH \w+ AS MATERIALIZED .*\) UPDATE ", re.DOTALL)


class DatabaseWrapper(base.DatabaseWrapper):
    """Connections of Django's backend. `turn`: the queue in which this connection is first, while it writes."""

    turn: WriterQueue | None = None
    transaction_mode: str | None

    @contextmanager
    def wait_for_turn(self) -> Iterator[None]:
        """Wait until the writers before this one have ended, and take SQLite's lock in the block.

        Raises:
            OperationalError: when the turn does not come within the `timeout` of the database.
        """
        queue, seconds = queue_of(self.settings_dict["NAME"]), self.settings_dict["OPTIONS"]["timeout"]
        if not queue.acquire(seconds):
            raise OperationalError("database is locked")
        self.turn = queue
        try:
            with queue.next_of_processes(seconds):
                yield
        except BaseException:
            self.end_turn()
            raise

    def end_turn(self) -> None:
        """Let the next writer begin, if this connection has been writing."""
        if queue := self.turn:
            self.turn = None
            queue.release()

    def create_cursor(self, name: str | None = None) -> "QueuedCursor":
        """Return a cursor whose writes outside of transactions wait for their turn, too."""
        cursor: QueuedCursor = self.connection.cursor(factory=partial(QueuedCursor, database=self))
        return cursor

    # The stubs lack the methods of transactions.

    def _start_transaction_under_autocommit(self) -> None:
        backend: Any = super()
        if self.transaction_mode != "IMMEDIATE":
            backend._start_transaction_under_autocommit()
            return
        with self.wait_for_turn():
            backend._start_transaction_under_autocommit()

    def _commit(self) -> None:
        backend: Any = super()
        backend._commit()
        self.end_turn()

    def _rollback(self) -> None:
        backend: Any = super()
        backend._rollback()
        self.end_turn()

    def _close(self) -> None:
        backend: Any = super()
        try:
            backend._close()
        finally:
            self.end_turn()


class QueuedCursor(base.SQLiteCursorWrapper):
    """A cursor of Django's backend for a connection whose writers wait for their turn."""

    def __init__(self, connection: Any, database: DatabaseWrapper) -> None:
        super().__init__(connection)
        self._database = database

    def execute(self, query: str, params: Any = None) -> Any:
        """Execute a statement."""
        if self._database.turn or self.connection.in_transaction or not WRITE.match(query):
            return super().execute(query, params)
        try:
            with self._database.wait_for_turn():
                return super().execute(query, params)
        finally:
            self._database.end_turn()
