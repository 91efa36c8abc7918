"""The database backend: Django's, except that writers wait for one another in the order of their arrival.

SQLite lets one transaction write at a time. The others wait in its busy handler, which sleeps longer and longer and has
no order: with 20 writers, single ones wait for seconds. The order here only decides who waits: SQLite's lock is still
what keeps transactions apart, so that a program that knows no order does no harm.

Threads whose work can share a transaction are a group: while one thread commits, the others wait, and the first of them
executes the work of all in one transaction, with one commit. Each has a savepoint, so none affects another.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from errno import EACCES, EPERM, EROFS
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, lockf
from functools import cache, partial
from threading import Lock
from time import monotonic, sleep
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, OperationalError, transaction
from django.db.backends.sqlite3 import base

Result = TypeVar("Result")
DEFAULT_OPTIONS = {
    # Otherwise a transaction that reads before it writes fails if another one writes in between.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL;",
}
"""The `OPTIONS` of a database, where its settings have none of these names."""
POLL_SECONDS = 0.0005
"""The interval of the tries of a process to lock a byte that another process has locked."""
NEXT, WRITING = 0, 1
"""The bytes of the file of the queue that the process locks which is next, and the one which writes."""
MAX_GROUP = 32
"""The maximum number of threads that share a transaction."""
MAX_GROUP_SECONDS = 0.05
"""The time after which a transaction takes no more work."""


class SharedWork(Generic[Result]):
    """The work of one thread in a transaction, which another thread may execute.

    `leads`: its thread executes the work of the group. `result` or `error` is the outcome. `hooks`: what Django calls
    after the commit. `is_undone`: the transaction has failed, and the work with it.
    """

    def __init__(self, work: Callable[[], Result]) -> None:
        self.leads = self.is_undone = False
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.hooks: Sequence[tuple[Any, Callable[[], object], bool]] = ()
        # Decisions authorize and log in the context of the request.
        self._work, self._context = work, copy_context()
        self._wakes = Lock()
        self._wakes.acquire()

    def execute(self) -> None:
        self.result = self._context.run(self._work)

    def wait(self, seconds: float = -1) -> bool:
        """Wait until the thread is woken. Returns False after this time."""
        return self._wakes.acquire(timeout=seconds)

    def wake(self) -> None:
        self._wakes.release()


class WriterQueue:
    """The writers of this process to one database. Each waits until those before it have ended their transactions.

    `waiting`: the writers whose turn comes, the first one first. `sharing`: the work that the first of them takes into
    its transaction if it leads a group.
    """

    def __init__(self, database: str) -> None:
        self._lock = Lock()
        self.is_taken = self._has_leader = False
        self.waiting: deque[Lock] = deque()
        self.sharing: deque[SharedWork[Any]] = deque()
        # A database in memory belongs to one process.
        is_file = database != ":memory:" and "mode=memory" not in database
        self._file = self._open(f"{database}-queue") if is_file else None

    @staticmethod
    def _open(path: str) -> int | None:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno not in (EACCES, EPERM, EROFS):
                raise
            # SQLite says that it cannot write either.
            return None

    def acquire(self, seconds: float) -> bool:
        """Wait for a turn. Returns False if it has not come within this time."""
        turn = Lock()
        turn.acquire()
        try:
            with self._lock:
                if not self.is_taken:
                    self.is_taken = True
                    return True
                self.waiting.append(turn)
            has_come = turn.acquire(timeout=seconds)
        except BaseException:
            # A signal has ended the wait, or the turn came at the same time.
            if not self._leave(self.waiting, turn) and turn.acquire(blocking=False):
                self.release()
            raise
        # It may have come after the time was over.
        return has_come or not self._leave(self.waiting, turn)

    def _leave(self, waiting: deque[Any], one: object) -> bool:
        """Remove one that waits. Returns False if it does not wait any more."""
        with self._lock:
            if is_waiting := one in waiting:
                waiting.remove(one)
            return is_waiting

    def release(self) -> None:
        """Give the turn to the writer that has waited longest."""
        if self._file is not None:
            lockf(self._file, LOCK_UN, 1, WRITING)
        with self._lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self.is_taken = False

    def join(self, member: SharedWork[Any], seconds: float) -> None:
        """Wait until the member leads the next group, or another member has executed its work.

        Raises:
            OperationalError: when neither happens within this time.
        """
        try:
            with self._lock:
                if not self._has_leader:
                    self._has_leader = member.leads = True
                    return
                self.sharing.append(member)
            is_woken = member.wait(seconds)
        except BaseException:
            # A signal has ended the wait.
            if not self._leave(self.sharing, member) and member.leads:
                self.end_group()
            raise
        if is_woken:
            return
        if self._leave(self.sharing, member):
            raise OperationalError("database is locked")
        member.wait()

    def take(self) -> SharedWork[Any] | None:
        """Remove and return the member that has waited longest."""
        with self._lock:
            return self.sharing.popleft() if self.sharing else None

    def end_group(self) -> None:
        """Let the member that has waited longest lead the next group, which begins when its turn comes."""
        with self._lock:
            self._has_leader = bool(self.sharing)
            if self.sharing:
                successor = self.sharing.popleft()
                successor.leads = True
                successor.wake()

    @contextmanager
    def next_of_processes(self, seconds: float) -> Iterator[None]:
        """Begin a transaction in the block, for the writer whose turn it is.

        After this time, the block is executed without the order of the processes.
        """
        if self._file is None:
            yield
            return
        ends_at = monotonic() + seconds
        self._lock_byte(self._file, NEXT, ends_at)
        try:
            self._lock_byte(self._file, WRITING, ends_at)
            yield
        finally:
            lockf(self._file, LOCK_UN, 1, NEXT)

    @staticmethod
    def _lock_byte(file: int, byte: int, ends_at: float) -> None:
        while True:
            with suppress(BlockingIOError, PermissionError):
                lockf(file, LOCK_EX | LOCK_NB, 1, byte)
                return
            if monotonic() > ends_at:
                return
            sleep(POLL_SECONDS)


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

    def __init__(self, settings_dict: dict[str, Any], alias: str = DEFAULT_DB_ALIAS) -> None:
        if not DEFAULT_OPTIONS.keys() <= settings_dict["OPTIONS"].keys():
            settings_dict = settings_dict | {"OPTIONS": DEFAULT_OPTIONS | settings_dict["OPTIONS"]}
        super().__init__(settings_dict, alias)

    def _queue(self) -> tuple[WriterQueue, float]:
        """Return the queue of the database, and the maximum wait for a turn in seconds."""
        # The path of a database may be a `Path`.
        return queue_of(str(self.settings_dict["NAME"])), self.settings_dict["OPTIONS"]["timeout"]

    @contextmanager
    def wait_for_turn(self) -> Iterator[None]:
        """Wait until the writers before this one have ended, and take SQLite's lock in the block.

        Raises:
            OperationalError: when the turn does not come within the `timeout` of the database.
        """
        queue, seconds = self._queue()
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

    def share_transaction(self, work: Callable[[], Result], is_one_statement: bool) -> Result:
        """Execute work in a transaction that others may share, and return its result. Its thread runs the hooks.

        `work`: is executed again, in a transaction of its own, if another member has failed the transaction.
        `is_one_statement`: without other writers, the work needs no transaction.

        Raises:
            OperationalError: when the turn does not come within the `timeout` of the database.
        """
        (queue, seconds), member = self._queue(), SharedWork(work)
        if is_one_statement and not queue.is_taken:
            return work()
        queue.join(member, seconds)
        if member.leads:
            self._lead(queue, member)
        try:
            if member.is_undone:
                with transaction.atomic(self.alias):
                    return work()
            if member.error is not None:
                raise member.error
        finally:
            # The error has a traceback with this frame.
            member.error = None
        for _, hook, is_robust in member.hooks:
            transaction.on_commit(hook, self.alias, is_robust)
        return member.result  # type: ignore[return-value]

    def _lead(self, queue: WriterQueue, leader: SharedWork[Any]) -> None:
        """Execute the work of a group. The leader comes first, so an error of its work concerns no other."""
        members: list[SharedWork[Any]] = []
        is_over = is_committed = False
        try:
            with transaction.atomic(self.alias):
                leader.execute()
                # Otherwise Django undoes the transaction.
                if not self.needs_rollback:
                    self._take_hooks(leader)
                    self._take_others(queue, members)
                # The next leader waits for its turn while this one commits.
                queue.end_group()
                is_over = True
            is_committed = True
        except Exception:
            if not members:
                raise
            leader.is_undone = True
        finally:
            if not is_over:
                queue.end_group()
            for member in members:
                member.is_undone = not is_committed
                member.wake()

    def _take_others(self, queue: WriterQueue, members: list[SharedWork[Any]]) -> None:
        """Execute the work of those that wait, and append them to the members of the group."""
        ends_at = monotonic() + MAX_GROUP_SECONDS
        while len(members) < MAX_GROUP - 1 and monotonic() < ends_at and (member := queue.take()) is not None:
            members.append(member)
            self._execute_in_savepoint(member)

    def _execute_in_savepoint(self, member: SharedWork[Any]) -> None:
        """Execute the work of one member. An error is its outcome, unless SQLite has undone the whole transaction."""
        # Django's savepoints have names of their own: as many statements would displace the prepared ones.
        self.connection.execute("SAVEPOINT work")
        try:
            member.execute()
        except Exception as error:
            member.error = error
        if member.error is not None or self.needs_rollback:
            self.connection.execute("ROLLBACK TO work")
            self.needs_rollback, self.run_on_commit = False, []
        self.connection.execute("RELEASE work")
        self._take_hooks(member)

    def _take_hooks(self, member: SharedWork[Any]) -> None:
        """Let the thread of the member call what its work has registered for the time after the commit."""
        hooks: Any = self.run_on_commit
        member.hooks, self.run_on_commit = hooks, []

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
