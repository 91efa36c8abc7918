"""The databases that a restore replaces: the new one is built beside the other, and takes its place in one step.

SQLite: a new file is renamed. PostgreSQL: new tables in their own schema replace the others in one transaction.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper

from ...db.database import transaction
from .archive import BackupRefused, sync_folder
from .contents import MIGRATIONS_TABLE, ProductTable, product_tables, read_migrations

TABLES_OF_MIGRATE = frozenset({
    "auth_group", "auth_group_permissions", "auth_permission", "conductor_accessrevision",
    "conductor_definitionrevision", "conductor_groupprofile", "conductor_scoperole", "django_content_type",
    "django_celery_beat_intervalschedule", "django_celery_beat_periodictask", "django_celery_beat_periodictasks",
})  # fmt: skip
"""Tables in which `migrate` itself writes rows."""


def current_tables(connection: BaseDatabaseWrapper) -> list[ProductTable]:
    """Return the tables of this server that the database has."""
    names = set(connection.introspection.table_names())
    if MIGRATIONS_TABLE not in names:
        return []
    return [table for table in product_tables(read_migrations(connection)) if table.name in names]


def first_used_table(connection: BaseDatabaseWrapper) -> str | None:
    """Return the name of a table with rows that `migrate` has not written, or None if there is none."""
    with connection.cursor() as cursor:
        for table in current_tables(connection):
            if table.name in TABLES_OF_MIGRATE:
                continue
            cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(table.name)} LIMIT 1")
            if cursor.fetchone():
                return table.name
    return None


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


STAGING = "conductor_restore"
"""The schema of the new tables. It exists only during a restore."""
UNLIMITED = "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0"
CLOSING_SECONDS = 2.0
"""The time that PostgreSQL may take to end a session that was closed."""
OTHER_SESSIONS = """
    SELECT pid, application_name, coalesce(host(client_addr), 'local') FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
      AND backend_type = 'client backend' ORDER BY pid
"""


class PostgresqlTarget:
    """The tables of this server in the current schema of the database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._schema = ""
        self._former_tables: set[str] = set()

    @contextmanager
    def exclusive_access(self) -> Iterator[None]:
        """Use single connections without limits in this block.

        Raises:
            BackupRefused: when sessions of the server are open.
        """
        options = self._connection.settings_dict["OPTIONS"]
        former = dict(options)
        if isinstance(self._connection, DatabaseWrapper):
            self._connection.close_pool()
        self._connection.close()
        options.pop("pool", None)
        options["options"] = f"{former.get('options', '')} {UNLIMITED}".strip()
        try:
            with self._connection.cursor() as cursor:
                _require_no_session(cursor)
                cursor.execute("SELECT current_schema()")
                self._schema = cursor.fetchone()[0] or ""
            if not self._schema:
                raise BackupRefused("The database has no schema in the search path of this role.")
            self._former_tables = {table.name for table in current_tables(self._connection)}
            yield
        finally:
            self._connection.close()
            options.clear()
            options.update(former)

    @contextmanager
    def staging(self) -> Iterator[None]:
        """Let the Django connection use the new schema in this block."""
        options = self._connection.settings_dict["OPTIONS"]
        former = options["options"]
        self._drop_staging()
        self._execute(f"CREATE SCHEMA {STAGING}")
        self._connection.close()
        options["options"] = f"{former} -c search_path={STAGING}"
        try:
            yield
        except BaseException:
            self._connection.close()
            options["options"] = former
            self._drop_staging()
            raise
        finally:
            self._connection.close()
            options["options"] = former

    def _drop_staging(self) -> None:
        self._execute(f"DROP SCHEMA IF EXISTS {STAGING} CASCADE")

    def _execute(self, statement: str) -> None:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
        except DatabaseError as error:
            raise BackupRefused(f"The role of DATABASE_URL must be allowed to create schemas: {error}") from error

    def expire_former_payloads(self, now: int, expires_at: int) -> None:
        """Add the payloads that only the former tables use to the new ones, so that a sweep deletes their content."""
        if "conductor_storedpayload" not in self._former_tables:
            return
        with self._connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO conductor_storedpayload (path, size, created_at, expires_at) "
                f"SELECT path, 0, %s, %s FROM {self._quote(self._schema)}.conductor_storedpayload "
                "ON CONFLICT DO NOTHING",
                [now, expires_at],
            )

    def swap(self) -> None:
        """Drop the former tables and move the new ones to their schema, in one transaction.

        Raises:
            BackupRefused: when a session uses the former tables, or another object depends on them.
        """
        try:
            with transaction.atomic(using=self._connection.alias), self._connection.cursor() as cursor:
                _require_no_session(cursor)
                cursor.execute("SET LOCAL lock_timeout = '5s'")
                fresh = _tables_of(cursor, STAGING)
                former = _tables_of(cursor, self._schema) & (self._former_tables | fresh | {MIGRATIONS_TABLE})
                if former:
                    cursor.execute(f"DROP TABLE {', '.join(self._qualified(self._schema, former))}")
                for table in self._qualified(STAGING, fresh):
                    cursor.execute(f"ALTER TABLE {table} SET SCHEMA {self._quote(self._schema)}")
                cursor.execute(f"DROP SCHEMA {STAGING}")
        except (DatabaseError, BackupRefused) as error:
            self._connection.close()
            self._drop_staging()
            if isinstance(error, OperationalError):
                raise BackupRefused("Another session uses the tables. Stop the server, and close it.") from error
            if isinstance(error, DatabaseError):
                raise BackupRefused(f"The tables cannot be replaced: {error}") from error
            raise

    def _qualified(self, schema: str, names: set[str]) -> list[str]:
        return [f"{self._quote(schema)}.{self._quote(name)}" for name in sorted(names)]

    def _quote(self, name: str) -> str:
        return self._connection.ops.quote_name(name)


RestoreTarget = SqliteTarget | PostgresqlTarget
"""A database that is replaced. Use it inside `exclusive_access`."""


def _tables_of(cursor: Any, schema: str) -> set[str]:
    cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema])
    return {name for (name,) in cursor.fetchall()}


def _require_no_session(cursor: Any) -> None:
    """Check that the server is stopped. Sessions that were just closed are waited for."""
    ends_at = monotonic() + CLOSING_SECONDS
    while sessions := _other_sessions(cursor):
        if monotonic() > ends_at:
            listed = ", ".join(f"pid {pid} ({name or 'no name'}, {address})" for pid, name, address in sessions[:5])
            raise BackupRefused(
                f"{len(sessions)} other sessions of this role are open in the database: {listed}. Stop all "
                "processes of the server, and close other sessions."
            )
        sleep(0.1)


def _other_sessions(cursor: Any) -> list[tuple[int, str, str]]:
    # Within a transaction, the view would not change otherwise.
    cursor.execute("SELECT pg_stat_clear_snapshot()")
    cursor.execute(OTHER_SESSIONS)
    sessions: list[tuple[int, str, str]] = cursor.fetchall()
    return sessions
