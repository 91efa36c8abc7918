"""Migration operations that do not block the writers of large tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations


class AddIndexWithoutLock(AddIndexConcurrently):
    """Add an index while other processes write: with CONCURRENTLY on PostgreSQL, plainly on SQLite.

    The migration must not be atomic. It can be repeated: an index that an interrupted run has left is built again.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Create the index."""
        name = schema_editor.quote_name(self.index.name)
        if schema_editor.connection.vendor != "postgresql":
            schema_editor.execute(f"DROP INDEX IF EXISTS {name}")
            migrations.AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        with unlimited_lock_wait(schema_editor):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Remove the index."""
        if schema_editor.connection.vendor != "postgresql":
            migrations.AddIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)
            return
        with unlimited_lock_wait(schema_editor):
            super().database_backwards(app_label, schema_editor, from_state, to_state)


@contextmanager
def unlimited_lock_wait(schema_editor: Any) -> Iterator[None]:
    """Wait without a limit: CONCURRENTLY waits for transactions that have begun before, and blocks no reader or writer.

    `migrate` limits the wait for all other locks.
    """
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        limit = cursor.fetchone()[0]
    schema_editor.execute("SET lock_timeout = 0")
    try:
        yield
    finally:
        schema_editor.execute(f"SET lock_timeout = '{limit}'")
