"""A restore into PostgreSQL: new tables are built in their own schema, and replace the others in one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from django.db import DatabaseError, OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper

from .errors import BackupRefused
from .restore_target import current_tables
from .schema_state import MIGRATIONS_TABLE

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
