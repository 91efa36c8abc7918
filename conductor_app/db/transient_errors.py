"""Errors that are faults of the moment: the same operation may succeed if it is repeated.

Nothing final follows from such an error: a decision is rolled back and repeated, a task goes back to its queue, an item
waits, and a client is asked to send its request again.
"""

import errno
import logging
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg
from django.db import InterfaceError, InternalError, OperationalError, connections

from ..core.errors import Busy, PayloadMissing, RequestRefused, StorageFileMissing, StorageUnavailable
from ..scripts.pool import HelperDied, ScriptsUnavailable
from .statements import is_in_transaction

log = logging.getLogger(__name__)
Result = TypeVar("Result")

DATABASE_ERRORS = (
    OperationalError,
    InterfaceError,
    # PostgreSQL reports a standby or a server that became read-only, and an aborted transaction, as internal errors.
    InternalError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.InternalError,
    sqlite3.OperationalError,
    sqlite3.InterfaceError,
)
TRANSIENT_ERRORS = (*DATABASE_ERRORS, Busy, StorageUnavailable, ScriptsUnavailable, HelperDied, OSError, MemoryError)
LASTING_ERRORS = (PayloadMissing, StorageFileMissing)
"""Subclasses of transient errors that repetition does not resolve."""
DISK_FULL = "53100"
"""The SQLSTATE of PostgreSQL for a full disk."""
NO_THREAD = "can't start new thread"
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
NO_FILES = frozenset({errno.EMFILE, errno.ENFILE})
OWN_ERRNOS = FULL_DISK | NO_FILES | {errno.ENOMEM, errno.ENOBUFS}
"""Numbers of errors that say something about this server, never about the host that it calls."""
OWN_RESOLVER_ERRNOS = frozenset({socket.EAI_MEMORY, socket.EAI_SYSTEM})
REPEAT_DELAYS = (0.02, 0.2)
"""The delays before the repetitions, in seconds. Then the caller gets the error, and decides when to repeat all."""
MAX_SECONDS = 5.0
"""The time after which nothing is repeated: a statement that waited for a lock until its timeout would wait again."""


def is_transient(error: BaseException) -> bool:
    """Return True if the error says nothing about the request, so that repeating it later may succeed.

    An `OSError` counts as one of the server itself. Workers that call other hosts convert the errors of those hosts
    into results of their task before they ask.
    """
    if isinstance(error, RuntimeError):
        return str(error).startswith(NO_THREAD)
    return isinstance(error, TRANSIENT_ERRORS) and not isinstance(error, LASTING_ERRORS)


def is_database_error(error: BaseException) -> bool:
    """Return True if the database did not respond, refused the transaction, or has no space."""
    return isinstance(error, DATABASE_ERRORS)


def discard_broken_connection() -> None:
    """Close the database connections of this thread that an error has left unusable, so that new ones are opened.

    A connection that is lost while a transaction begins or ends keeps the state of an open transaction, which Django
    does not reset. Within a transaction of a caller, nothing happens.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.atomic_blocks:
            connection.in_atomic_block = False
            connection.close_if_unusable_or_obsolete()


def exception_chain(error: BaseException) -> list[BaseException]:
    """Return an exception and its causes, the innermost last."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def own_error_of_exchange(error: BaseException) -> BaseException | None:
    """Return the error of this server that ended an exchange with another host, or None if the host is the cause.

    Client libraries wrap errors of sockets in their own: this one may be a cause, or a part of a group.
    """
    return next((each for each in _causes(error, set()) if _is_own(each)), None)


def _is_own(error: BaseException) -> bool:
    if isinstance(error, socket.gaierror):
        return error.errno in OWN_RESOLVER_ERRNOS
    if isinstance(error, OSError):
        return error.errno in OWN_ERRNOS
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and is_transient(error))


def _causes(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    yield from _causes(error.__cause__, seen)
    yield from _causes(error.__context__, seen)
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _causes(each, seen)


def describe_transient(error: BaseException) -> str:
    """Return a sentence that says what failed, for callers and operators. Errors of libraries may contain secrets."""
    if isinstance(error, RequestRefused):
        return error.message
    if is_database_error(error):
        return _describe_database_error(error)
    if isinstance(error, StorageUnavailable):
        return "The storage of payloads did not respond."
    if isinstance(error, ScriptsUnavailable | HelperDied):
        return "No helper process could evaluate a script."
    if isinstance(error, OSError):
        return _describe_os_error(error)
    return "The server is out of memory." if isinstance(error, MemoryError) else "The server is out of threads."


def _describe_database_error(error: BaseException) -> str:
    texts = [str(each).lower() for each in (error, error.__cause__)]
    if getattr(error.__cause__ or error, "sqlstate", None) == DISK_FULL or any("is full" in text for text in texts):
        return "The disk of the database is full."
    if any("read-only" in text or "readonly" in text for text in texts):
        return "The database accepts no changes at present: it is read-only."
    return "The database did not respond."


def _describe_os_error(error: OSError) -> str:
    if error.errno in FULL_DISK:
        return "The disk of the server is full."
    if error.errno in NO_FILES:
        return "The server has too many open files."
    return f"The server failed: {(error.strerror or type(error).__name__).rstrip('.')}."


class FaultTolerance:
    """The repetitions of one operation."""

    def __init__(self) -> None:
        self._began, self._count = time.monotonic(), 0

    def repeat(self, operation: Callable[[], Result]) -> Result:
        """Call the operation until it meets no transient error, and return its result. Other errors are raised."""
        while True:
            try:
                return operation()
            except Exception as error:
                if not self.wait_after(error):
                    raise

    def wait_after(self, error: Exception) -> bool:
        """Wait before a repetition. Return False if the error is not transient, or was repeated often enough.

        Refusals such as Busy are not repeated: what raises them has waited itself. Within a transaction nothing is
        repeated, because only all of the transaction can be.
        """
        is_repeated = self._count < len(REPEAT_DELAYS) and time.monotonic() - self._began < MAX_SECONDS
        if not is_repeated or isinstance(error, RequestRefused) or not is_transient(error) or is_in_transaction():
            return False
        log.warning("repeated_after_fault", extra={"cause": f"{type(error).__name__}: {error}"[:500]})
        time.sleep(REPEAT_DELAYS[self._count])
        self._count += 1
        # A lost connection would fail every repetition.
        discard_broken_connection()
        return True
