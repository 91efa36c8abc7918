"""Access to private attributes of psycopg, for `pipeline` only.

A contract test (`tests/db/test_psycopg_internals.py`) checks their behavior. If a version of psycopg lacks them,
statements go through ordinary cursors.
"""

from collections import OrderedDict, deque
from functools import cache
from typing import Any

from psycopg import Connection

PreparedNames = OrderedDict[tuple[bytes, tuple[Any, ...]], bytes]


@cache
def is_supported() -> bool:
    """Return True if this version of psycopg has the attributes that the functions of this module use."""
    from psycopg._preparing import PrepareManager

    manager = PrepareManager()
    return (
        isinstance(getattr(manager, "_names", None), OrderedDict)
        and isinstance(getattr(manager, "_to_flush", None), deque)
        and callable(getattr(manager, "clear", None))
        and callable(getattr(Connection, "_get_tx_start_command", None))
    )


def prepared_names(connection: Connection[Any]) -> PreparedNames:
    """Return the statements that psycopg has prepared on a connection, least recently used first.

    psycopg clears them, here and on the server, when it rolls a transaction back.
    """
    return connection._prepared._names


def pending_closings(connection: Connection[Any]) -> deque[bytes | None]:
    """Return the names of prepared statements that the server must still deallocate. None means all."""
    return connection._prepared._to_flush


def discard_prepared(connection: Connection[Any]) -> None:
    """Discard all prepared statements of a connection, so that psycopg prepares them again."""
    connection._prepared.clear()


def begin_command(connection: Connection[Any]) -> bytes:
    """Return the statement that begins a transaction on the connection."""
    return connection._get_tx_start_command()
