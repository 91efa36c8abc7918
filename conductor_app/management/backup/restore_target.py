"""The database that a restore replaces: the new one is built beside it, and takes its place in one step."""

from contextlib import AbstractContextManager
from typing import Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from .schema_state import MIGRATIONS_TABLE, ProductTable, product_tables, read_migrations

TABLES_OF_MIGRATE = frozenset({
    "auth_group", "auth_group_permissions", "auth_permission", "conductor_accessrevision",
    "conductor_definitionrevision", "conductor_groupprofile", "conductor_scoperole", "django_content_type",
    "django_celery_beat_intervalschedule", "django_celery_beat_periodictask", "django_celery_beat_periodictasks",
})  # fmt: skip
"""Tables in which `migrate` itself writes rows."""


class RestoreTarget(Protocol):
    """A database that is replaced. Use it inside `exclusive_access`."""

    def exclusive_access(self) -> AbstractContextManager[None]:
        """Refuse the restore if the server runs, and let no server begin work on SQLite in this block."""
        ...

    def staging(self) -> AbstractContextManager[None]:
        """Let the Django connection use the new database in this block. An exception removes it."""
        ...

    def expire_former_payloads(self, now: int, expires_at: int) -> None:
        """Add the payloads that only the former database uses to the new one, so that a sweep deletes their content."""
        ...

    def swap(self) -> None:
        """Replace the former database by the new one."""
        ...


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
