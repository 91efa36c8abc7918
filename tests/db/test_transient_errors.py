"""The function that tells faults of the moment from results."""

import errno
import socket

import psycopg
import pytest
import requests
from django.db import DataError, IntegrityError, InternalError, OperationalError

from conductor_app.core.errors import (
    Busy,
    Conflict,
    PayloadMissing,
    QuotaExceeded,
    StorageFileMissing,
    StorageUnavailable,
)
from conductor_app.db.transient_errors import describe_transient, is_transient, own_error_of_exchange
from conductor_app.scripts.pool import HelperDied


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OperationalError("server closed the connection unexpectedly"), "The database did not respond."),
        (psycopg.OperationalError("the connection is closed"), "The database did not respond."),
        (OperationalError("database or disk is full"), "The disk of the database is full."),
        (
            InternalError("cannot execute INSERT in a read-only transaction"),
            "The database accepts no changes at present: it is read-only.",
        ),
        (
            OperationalError("attempt to write a readonly database"),
            "The database accepts no changes at present: it is read-only.",
        ),
        (Busy("All helpers are at work."), "All helpers are at work."),
        (QuotaExceeded("Too many requests.", 5), "Too many requests."),
        (StorageUnavailable("timed out"), "The storage of payloads did not respond."),
        (HelperDied("SIGKILL"), "No helper process could evaluate a script."),
        (OSError(errno.ENOSPC, "No space left on device"), "The disk of the server is full."),
        (OSError(errno.EMFILE, "Too many open files"), "The server has too many open files."),
        (OSError(errno.EIO, "Input/output error"), "The server failed: Input/output error."),
        (MemoryError(), "The server is out of memory."),
        (RuntimeError("can't start new thread"), "The server is out of threads."),
    ],
)
def test_a_fault_of_the_moment_is_described_without_details_of_the_server(error, sentence):
    assert is_transient(error)
    assert describe_transient(error) == sentence


@pytest.mark.parametrize(
    "error",
    [
        DataError(),
        IntegrityError(),
        Conflict(),
        PayloadMissing(),
        StorageFileMissing(),
        ValueError(),
        RuntimeError("x"),
    ],
)
def test_other_errors_are_results(error):
    assert not is_transient(error)


def wrapped(error: BaseException) -> Exception:
    """Return the error as a client library raises it."""
    try:
        try:
            raise error
        except BaseException as cause:
            raise requests.ConnectionError("Max retries exceeded") from cause
    except requests.ConnectionError as raised:
        return raised


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENOBUFS, "No buffer space available"),
        socket.gaierror(socket.EAI_SYSTEM, "System error"),
        MemoryError(),
        ExceptionGroup("tasks", [ValueError(), OSError(errno.ENFILE, "Too many open files in system")]),
    ],
)
def test_an_error_of_this_server_is_found_within_that_of_a_library(error):
    found = own_error_of_exchange(wrapped(error))

    assert found is not None
    assert is_transient(found)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        TimeoutError("timed out"),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        OSError(errno.EHOSTUNREACH, "No route to host"),
    ],
)
def test_an_error_of_another_host_is_a_result_of_the_exchange(error):
    assert own_error_of_exchange(wrapped(error)) is None
