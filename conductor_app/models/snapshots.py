"""Consistent reads: several SELECTs that see one state of the database.

Outside a transaction each SELECT sees the state at its start, so that a response from two of them may contain a run
before a change and its tasks after it. `read_snapshot` gives them one snapshot.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import connection, transaction

from .. import conf


@contextmanager
def read_snapshot() -> Iterator[None]:
    """Run all SELECTs of a block, or of a decorated function, in the snapshot that the first of them takes.

    Inside an open transaction, and so inside another snapshot, it has no effect. A write inside a snapshot is an error,
    on SQLite as on PostgreSQL. The snapshot costs PostgreSQL two round trips (BEGIN, COMMIT): a single SELECT needs
    none. Do not wait inside one, and do not return lazy readers, such as streams.
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
    """Let the next transactions begin with ISOLATION LEVEL REPEATABLE READ READ ONLY, which never fail to serialize."""
    from psycopg import IsolationLevel

    connection.ensure_connection()
    own: Any = connection.connection
    level = own.isolation_level
    own.isolation_level, own.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        yield
    finally:
        if connection.connection is own and not own.closed:
            own.isolation_level, own.read_only = level, None
        else:
            # Django has given up a connection that failed. The pool must not hand it out in this state.
            own.close()


@contextmanager
def _sqlite_query_only() -> Iterator[None]:
    """Begin the next transactions deferred: they neither wait for writers nor block them, and they refuse to write."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    own: Any = connection.connection
    mode, was_only = connection.transaction_mode, own.execute("PRAGMA query_only").fetchone()[0]
    connection.transaction_mode = "DEFERRED"
    own.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        connection.transaction_mode = mode
        if connection.connection is own and not was_only:
            own.execute("PRAGMA query_only = OFF")
