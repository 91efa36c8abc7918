"""Reads of one state of the database.

Outside a transaction, each SELECT sees the state at its start: a response that needs two may contain a run before a
change and its tasks after it. In `read_snapshot`, all SELECTs see the same state.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import connection, transaction

from ..settings import conf


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
