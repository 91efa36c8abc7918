"""The read replica: which database a block reads, and how far the replica is behind.

A block that reads the replica reads nothing else: its snapshots, its queries and its raw SQL use one connection.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from .. import conf, process_state

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


def _fetch(alias: str, sql: str, params: Sequence[str] = ()) -> list[tuple]:
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
