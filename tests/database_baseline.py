"""Baseline rows of a new database (roles, permissions, timestamps of sweeps), restored after each test that commits.

After a test that commits, Django truncates every table and inserts the baseline again. That takes longer than most of
the thousand tests that commit. This module writes only the tables that the test has changed.
"""

from typing import Any

from django.db import connection, transaction
from django.test import TransactionTestCase

from conductor_app.db.transient_errors import discard_broken_connection

Rows = list[tuple[Any, ...]]


class BaselineRows:
    """The initial contents of the tables."""

    def __init__(self) -> None:
        self._tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
        self._rows = {table: _rows(table) for table in self._not_empty()}

    def put_back(self) -> None:
        """Restore the contents of every table."""
        with transaction.atomic():
            changed = self._changed()
            for table in changed:
                _run(f"DELETE FROM {_quote_name(table)}")
            for table in changed:
                for row in self._rows.get(table, ()):
                    _run(f"INSERT INTO {_quote_name(table)} VALUES ({', '.join(['%s'] * len(row))})", row)

    def _changed(self) -> list[str]:
        strange = self._not_empty() - self._rows.keys()
        return [*strange, *(table for table, rows in self._rows.items() if _rows(table) != rows)]

    def _not_empty(self) -> set[str]:
        asked = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {_quote_name(table)})" for table in self._tables)
        return {table for (table,) in _run(" UNION ALL ".join(asked))}


_baseline: BaselineRows


def remember_baseline() -> None:
    """Remember the current contents; tests that commit restore them."""
    global _baseline
    _baseline = BaselineRows()
    TransactionTestCase._fixture_teardown = lambda self: restore_baseline()
    # A new connection loads all tables, which takes longer on PostgreSQL than most of these tests.
    TransactionTestCase._should_reload_connections = lambda self: False


def restore_baseline() -> None:
    """Restore the remembered contents, through a new connection if the test has lost its own."""
    discard_broken_connection()
    _baseline.put_back()


def end_sessions() -> None:
    """End all sessions, such as those of threads that still run: PostgreSQL drops no database that has one."""
    if connection.vendor == "postgresql":
        connection.close()
        connection.close_pool()
        with connection._nodb_cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [connection.settings_dict["NAME"]],
            )


def _rows(table: str) -> set[tuple[Any, ...]]:
    return set(_run(f"SELECT * FROM {_quote_name(table)}"))


def _run(sql: str, values: tuple[Any, ...] = ()) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []


def _quote_name(table: str) -> str:
    return connection.ops.quote_name(table)
