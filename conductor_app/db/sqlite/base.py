"""The database backend: Django's, except that writers wait for one another in the order of their arrival."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from .writer_queue import WriterQueue, queue_of

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
