"""Which errors are faults of the moment: the same operation may succeed if it is repeated.

Nothing final follows from such an error: a decision is rolled back and repeated, a task goes back to its queue, an item
waits, and a client is asked to send its request again.
"""

import sqlite3

import psycopg
from django.db import InterfaceError, InternalError, OperationalError

from .blob_storage import StorageFileMissing, StorageUnavailable
from .core.errors import Busy, PayloadMissing
from .scripts.pool import ScriptsUnavailable
from .scripts.process import HelperDied

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


def is_transient(error: BaseException) -> bool:
    """Return True if the error says nothing about the request, so that repeating it later may succeed.

    An `OSError` counts as one of the server itself. Workers that call other hosts convert the errors of those hosts
    into results of their task before they ask.
    """
    return isinstance(error, TRANSIENT_ERRORS) and not isinstance(error, LASTING_ERRORS)


def is_database_error(error: BaseException) -> bool:
    """Return True if the database did not respond, refused the transaction, or has no space."""
    return isinstance(error, DATABASE_ERRORS)
