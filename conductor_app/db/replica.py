"""The read replica: which database a block reads, how far the replica is behind, and reads of one state.

A block that reads the replica reads nothing else: its snapshots, its queries and its raw SQL use one connection.

Outside a transaction, each SELECT sees the state at its start: a response that needs two may contain a run before a
change and its tasks after it. In `read_snapshot`, all SELECTs see the same state.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections, transaction

from ..settings import conf
from ..utils import process_state

REPLICA = "replica"
CHECK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """How far the replica is behind. `lag_seconds`: None if it does not answer, or is no replica."""

    lag_seconds: float | None

    @property
    def is_usable(self) -> bool:
        return self.lag_seconds is not None and self.lag_seconds <= conf.replica_max_lag_seconds


class CachedReplicaState:
    """The state of the replica, at most one second old. One thread measures it; the others use the previous state."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._checked_at = float("-inf")
        self._state = ReplicaState(None)

    def state(self) -> ReplicaState:
        """Return the state."""
        if monotonic() - self._checked_at > CHECK_SECONDS and self._lock.acquire(blocking=False):
            try:
                self._state = measure_state()
                self._checked_at = monotonic()
            finally:
                self._lock.release()
        return self._state

    def mark_down(self) -> None:
        """Use the primary until the next measurement."""
        self._state, self._checked_at = ReplicaState(None), monotonic()


cached_state = process_state.slot(CachedReplicaState)


def is_configured() -> bool:
    """Return True if there is a replica."""
    return REPLICA in connections.settings


def measure_state() -> ReplicaState:
    """Measure how far the replica is behind: 0 if it has everything that the primary had written before.

    Otherwise the lag is the age of the last transaction that it has replayed, which is never too small.
    """
    try:
        [(written,)] = _fetch(DEFAULT_DB_ALIAS, "SELECT pg_current_wal_lsn()")
        [(is_complete, seconds)] = _fetch(
            REPLICA,
            "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn, "
            "EXTRACT(EPOCH FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8 WHERE pg_is_in_recovery()",
            [written],
        ) or [(False, None)]
    except DatabaseError:
        return ReplicaState(None)
    return ReplicaState(0.0 if is_complete else seconds)


def _fetch(alias: str, sql: str, params: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


@contextmanager
def read_replica() -> Iterator[None]:
    """Let the block use the replica in place of the primary. Writes are errors."""
    primary = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections[REPLICA]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = primary


def has_failed() -> bool:
    """Return True if a statement of this thread has failed on the replica, or the connection to it."""
    return connections[REPLICA].errors_occurred


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Run all SELECTs of a block, or of a decorated function, in one snapshot, which the first of them takes.

    It has no effect inside an open transaction, and so inside another snapshot. A write inside a snapshot is an error,
    on SQLite and on PostgreSQL. A single SELECT needs no snapshot, which costs PostgreSQL two round trips (BEGIN,
    COMMIT). Do not wait inside a snapshot, and do not return lazy readers, such as streams, from it.
    """
    if connection.in_atomic_block:
        with _sqlite_query_only() if conf.checks_read_snapshots else nullcontext():
            yield
        return
    read_only = _postgresql_read_only if connection.vendor == "postgresql" else _sqlite_query_only
    with read_only(), transaction.atomic():
        yield


@contextmanager
def _postgresql_read_only() -> Iterator[None]:
    """Begin the next transactions REPEATABLE READ READ ONLY, which cannot cause serialization failures."""
    from psycopg import IsolationLevel

    connection.ensure_connection()
    raw_connection: Any = connection.connection
    level = raw_connection.isolation_level
    raw_connection.isolation_level, raw_connection.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        yield
    finally:
        if connection.connection is raw_connection and not raw_connection.closed:
            raw_connection.isolation_level, raw_connection.read_only = level, None
        else:
            # Django has dropped the connection after an error. The pool must not reuse it in this state.
            raw_connection.close()


@contextmanager
def _sqlite_query_only() -> Iterator[None]:
    """Begin the next transactions deferred and read-only, so that they neither wait for writers nor block them."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    raw_connection: Any = connection.connection
    # The stubs lack `transaction_mode` of the SQLite backend.
    backend: Any = connection
    mode, was_query_only = backend.transaction_mode, raw_connection.execute("PRAGMA query_only").fetchone()[0]
    backend.transaction_mode = "DEFERRED"
    raw_connection.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        backend.transaction_mode = mode
        if connection.connection is raw_connection and not was_query_only:
            raw_connection.execute("PRAGMA query_only = OFF")
