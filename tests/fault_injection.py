"""Faults of the moment, injected once at each call of the database, the storage and the helper processes.

    for fault in faults.at_each_call("OperationalError"):
        scenario = …                                     # its calls are not counted
        with fault:
            scenario.worker("a").completes()             # the next call of the loop fails one call later
        …                                                # repeat what was refused, and require that the work is done

The loop ends after the first block that makes fewer calls than the position of its fault. The errors replace those of
the outside world: Django's cursors, the statements that are sent to PostgreSQL without cursors, files, and processes.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import RLock
from types import TracebackType
from typing import Any, Self

import psycopg
import pytest
from django.core.files.storage import FileSystemStorage
from django.db import InterfaceError, InternalError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from psycopg.pq import TransactionStatus

from conductor_app.core.errors import Busy, StorageUnavailable
from conductor_app.db import pipeline as pg_pipeline
from conductor_app.db.transient_errors import is_database_error
from conductor_app.scripts.pool import Helper, Pool, ScriptsUnavailable

ERRORS: dict[str, Callable[[], Exception]] = {
    "OperationalError": lambda: OperationalError("canceling statement due to statement timeout"),
    "InterfaceError": lambda: InterfaceError("connection already closed"),
    "InternalError": lambda: InternalError("cannot execute UPDATE in a read-only transaction"),
    "Busy": lambda: Busy(run="…"),
    "OSError": lambda: OSError(28, "No space left on device"),
    "MemoryError": MemoryError,
    "StorageUnavailable": lambda: StorageUnavailable("TimeoutError: timed out"),
    "ScriptsUnavailable": lambda: ScriptsUnavailable("All 2 helper processes were busy for 30 s."),
}
"""A new error of each kind."""
OUTSIDE_OF_THE_DATABASE = {"OSError", "StorageUnavailable", "ScriptsUnavailable"}
"""Errors that no statement raises. The calls of the database are not counted for them."""
MAX_CALLS = 500
COMMIT = "COMMIT"


class FaultInjector:
    """Counts the calls of the outside world within the block of a fault, and raises its error at one of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._lock = patch, RLock()
        self._active: Fault | None = None
        self._watch_database(CursorWrapper, "_execute", lambda cursor, sql, *_: sql)
        self._watch_database(CursorWrapper, "_executemany", lambda cursor, sql, *_: sql)
        self._watch_database(
            pg_pipeline, "_send_statements", lambda statements, *_: " | ".join(s for s, _ in statements)
        )
        self._watch_database(BaseDatabaseWrapper, "_commit", lambda database: COMMIT if _must_commit(database) else "")
        self._watch_database(BaseDatabaseWrapper, "connect", lambda *_: "connect")
        for name in ("save", "open", "exists", "delete"):
            self.watch(
                FileSystemStorage, name, describe=lambda _, path, *__, name=name, **___: f"storage: {name} {path}"
            )
        self.watch(Pool, "evaluate", describe=lambda *_, **__: "script")
        self.watch(Helper, "ask", describe=lambda *_: "helper")

    def watch(self, owner: Any, name: str, describe: Callable[..., str] | None = None) -> None:
        """Count the calls of a function of a class or module, such as the one that sends a message to a broker.

        `describe`: returns the text for a call from its arguments; calls with an empty text are not counted.
        """
        original = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._count(describe(*args, **kwargs) if describe else name)
            return original(*args, **kwargs)

        self._patch.setattr(owner, name, watched)

    def _watch_database(self, owner: Any, name: str, describe: Callable[..., str]) -> None:
        """Count the calls of a function of the database, for errors that it can raise."""
        self.watch(owner, name, lambda *arguments: describe(*arguments) if self._can_fail_in_database() else "")

    def _can_fail_in_database(self) -> bool:
        fault = self._active
        return fault is not None and (fault.is_anywhere or fault.kind not in OUTSIDE_OF_THE_DATABASE)

    def at_each_call(self, kind: str, *, is_anywhere: bool = False) -> Iterator["Fault"]:
        """Yield a fault for the first call, the second one, and so on, until a block ends before its fault.

        `is_anywhere`: statements raise the error even if its kind is one of OUTSIDE_OF_THE_DATABASE.
        """
        for position in range(1, MAX_CALLS):
            fault = Fault(self, position, kind, is_anywhere)
            yield fault
            assert fault.has_begun, "The fault was not used as a context manager."
            if not fault.site:
                return
        raise AssertionError(f"The block makes more than {MAX_CALLS} calls.")

    def _count(self, site: str) -> None:
        with self._lock:
            fault = self._active
            if fault is None or fault.site or not site or fault.count_call() < fault.position:
                return
            fault.site = site
        # Django rolls back after errors of this class only; no other ones occur there.
        error = ERRORS["OperationalError" if site == COMMIT else fault.kind]()
        if is_database_error(error):
            _spoil_connection(error)
        raise error

    def _set_active(self, fault: "Fault | None") -> None:
        with self._lock:
            self._active = fault


class Fault:
    """One error at one call of the `with` block. `site` describes the call, or is empty if the block made fewer."""

    def __init__(self, injector: FaultInjector, position: int, kind: str, is_anywhere: bool) -> None:
        self._injector, self.position, self.kind, self.is_anywhere = injector, position, kind, is_anywhere
        self._calls, self.site, self.has_begun = 0, "", False

    def count_call(self) -> int:
        self._calls += 1
        return self._calls

    def __enter__(self) -> Self:
        self.has_begun = True
        self._injector._set_active(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._injector._set_active(None)
        if error is not None:
            error.add_note(f"after {self}")

    def __str__(self) -> str:
        return f"{self.kind} at call {self.position}: {self.site[:300]}"


def _must_commit(database: BaseDatabaseWrapper) -> bool:
    """Return False if PostgreSQL has executed the commit together with the last statements."""
    connection = database.connection
    is_psycopg = isinstance(connection, psycopg.Connection)
    return not is_psycopg or connection.info.transaction_status != TransactionStatus.IDLE


def _spoil_connection(error: Exception) -> None:
    """Leave the connection as a real error would: closed, or within a failed transaction."""
    database = connections["default"]
    if database.vendor != "postgresql" or database.connection is None:
        return
    if isinstance(error, InterfaceError):
        database.connection.close()
        database.errors_occurred = True
    elif database.in_atomic_block:
        with suppress(psycopg.Error):
            database.connection.execute("SELECT no_such_column")
