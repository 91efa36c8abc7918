"""A restore into SQLite: a new file is built beside the database, and then renamed."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from .archive_writer import sync_folder
from .errors import BackupRefused

SIDE_FILES = ("", "-wal", "-shm", "-journal", "-queue")


class SqliteTarget:
    """The database file of the settings."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._path = Path(connection.settings_dict["NAME"])
        self._draft = self._path.with_name(f".{self._path.name}.restore")
        self._lock: sqlite3.Connection | None = None

    @contextmanager
    def exclusive_access(self) -> Iterator[None]:
        """Lock the file, so that a server can neither run nor start.

        Raises:
            BackupRefused: when another process uses the database.
        """
        self._connection.close()
        self._path.touch(mode=0o600)
        with closing(sqlite3.connect(self._path, isolation_level=None, timeout=1)) as lock:
            try:
                lock.execute("PRAGMA locking_mode=EXCLUSIVE")
                # Leaving the write-ahead log requires that no other connection is open, and removes its files, which
                # would otherwise be applied to the new file.
                (mode,) = lock.execute("PRAGMA journal_mode=DELETE").fetchone()
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise BackupRefused(self._in_use()) from error
            if mode != "delete":
                raise BackupRefused(self._in_use())
            self._lock = lock
            try:
                yield
            finally:
                self._lock = None

    def _in_use(self) -> str:
        return (
            f"Another process uses {self._path}. Stop the server, and close other programs that have opened the file."
        )

    @contextmanager
    def staging(self) -> Iterator[None]:
        """Let the Django connection use the new file in this block."""
        self._remove_draft()
        settings = self._connection.settings_dict
        former = settings["NAME"]
        settings["NAME"] = str(self._draft)
        try:
            self._draft.touch(mode=0o600)
            with self._connection.cursor() as cursor:
                # The file is worthless until it is complete, and is then written to the disk as a whole.
                cursor.execute("PRAGMA synchronous=OFF")
                cursor.execute("PRAGMA journal_mode=MEMORY")
                cursor.execute("PRAGMA cache_size=-32768")
            yield
            self._connection.close()
            self._finish_draft()
        except BaseException:
            self._connection.close()
            self._remove_draft()
            raise
        finally:
            self._connection.close()
            settings["NAME"] = former

    def _finish_draft(self) -> None:
        with closing(sqlite3.connect(self._draft, isolation_level=None)) as draft:
            if violation := draft.execute("PRAGMA foreign_key_check").fetchone():
                raise BackupRefused(f"Row {violation[1]} of {violation[0]} refers to a missing row of {violation[2]}.")
            draft.execute("PRAGMA journal_mode=DELETE")
        with self._draft.open("rb+") as file:
            os.fsync(file.fileno())

    def expire_former_payloads(self, now: int, expires_at: int) -> None:
        """Add the payloads that only the former database uses to the new one, so that a sweep deletes their content."""
        assert self._lock is not None
        try:
            paths = self._lock.execute("SELECT path FROM conductor_storedpayload")
        except sqlite3.OperationalError:
            # The former database is empty.
            return
        with transaction.atomic(using=self._connection.alias), self._connection.cursor() as cursor:
            for (path,) in paths:
                cursor.execute(
                    "INSERT OR IGNORE INTO conductor_storedpayload (path, size, created_at, expires_at) "
                    "VALUES (%s, 0, %s, %s)",
                    [path, now, expires_at],
                )

    def swap(self) -> None:
        """Rename the new file. Processes that open the database afterwards see only the new one."""
        self._draft.replace(self._path)
        self._remove_draft()
        sync_folder(self._path.parent)

    def _remove_draft(self) -> None:
        for suffix in SIDE_FILES:
            self._draft.with_name(self._draft.name + suffix).unlink(missing_ok=True)
