"""Migration operations that do not block the writers of large tables."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class AddIndexWithoutLock(AddIndexConcurrently):
    """Add an index while other processes write: with CONCURRENTLY on PostgreSQL, plainly on SQLite.

    The migration must not be atomic. It can be repeated: an index that an interrupted run has left is built again.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        _drop_index(schema_editor, self.index.name)
        if schema_editor.connection.vendor != "postgresql":
            migrations.AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        with _unlimited_lock_wait(schema_editor):
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        _drop_index(schema_editor, self.index.name)


class RemoveIndexWithoutLock(RemoveIndexConcurrently):
    """Remove an index while other processes write: with CONCURRENTLY on PostgreSQL, plainly on SQLite.

    The migration must not be atomic. It can be repeated.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        _drop_index(schema_editor, self.name)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        index = to_state.models[app_label, self.model_name_lower].get_index_by_name(self.name)
        added = AddIndexWithoutLock(self.model_name, index)
        added.database_forwards(app_label, schema_editor, from_state, to_state)


class AddUniqueConstraintWithoutLock(migrations.AddConstraint):
    """Add a unique constraint with a condition while other processes write: with CONCURRENTLY on PostgreSQL.

    Django implements such a constraint as a unique index. The migration must not be atomic. It can be repeated: an
    index that an interrupted run has left is built again.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        _drop_index(schema_editor, self.constraint.name)
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        statement = str(self.constraint.create_sql(model, schema_editor))
        with _unlimited_lock_wait(schema_editor):
            schema_editor.execute(statement.replace("UNIQUE INDEX", "UNIQUE INDEX CONCURRENTLY", 1), params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        _drop_index(schema_editor, self.constraint.name)


class RemoveUniqueConstraintWithoutLock(migrations.RemoveConstraint):
    """Remove a unique constraint with a condition while other processes write: with CONCURRENTLY on PostgreSQL.

    The migration must not be atomic. It can be repeated.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        _drop_index(schema_editor, self.name)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        constraint = to_state.models[app_label, self.model_name_lower].get_constraint_by_name(self.name)
        added = AddUniqueConstraintWithoutLock(self.model_name, constraint)
        added.database_forwards(app_label, schema_editor, from_state, to_state)


def _drop_index(schema_editor: BaseDatabaseSchemaEditor, name: str) -> None:
    quoted = schema_editor.quote_name(name)
    if schema_editor.connection.vendor != "postgresql":
        schema_editor.execute(f"DROP INDEX IF EXISTS {quoted}")
        return
    with _unlimited_lock_wait(schema_editor):
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {quoted}")


class SetFillFactor(migrations.operations.base.Operation):
    """Let inserts fill the pages of a table to this percentage only, on PostgreSQL.

    An update whose new row fits on the page of the old one logs only the bytes that differ, and may be a HOT update.
    It applies to pages that are filled later, blocks neither reads nor writes, and can be repeated.
    """

    reversible = True

    def __init__(self, model_name: str, percentage: int) -> None:
        self.model_name, self.percentage = model_name, percentage

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change nothing: storage parameters are unknown to Django's state."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        self._alter(app_label, schema_editor, to_state, f"SET (fillfactor = {self.percentage})")

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Return to PostgreSQL's default."""
        self._alter(app_label, schema_editor, to_state, "RESET (fillfactor)")

    def _alter(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, state: ProjectState, change: str) -> None:
        model = state.apps.get_model(app_label, self.model_name)
        database = schema_editor.connection
        if database.vendor == "postgresql" and self.allow_migrate_model(database.alias, model):
            schema_editor.execute(f"ALTER TABLE {schema_editor.quote_name(model._meta.db_table)} {change}")

    def describe(self) -> str:
        """Return the description for `migrate --plan`."""
        return f"Fill pages of {self.model_name} to {self.percentage} %"


@contextmanager
def _unlimited_lock_wait(schema_editor: BaseDatabaseSchemaEditor) -> Iterator[None]:
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
