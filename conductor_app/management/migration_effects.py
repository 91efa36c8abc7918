"""What a migration does to its tables: whether it blocks other processes, and whether it reads all rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.db import migrations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from conductor_app.models.migration_operations import SetFillFactor

WHOLE_APP = "all tables"
"""The table of operations that name no model."""


class MigrationEffect(Enum):
    """The effect of an operation on a table, from the lightest to the heaviest."""

    NO_LOCK = "blocks no reader or writer"
    SHORT_LOCK = "locks the table briefly"
    LONG_LOCK = "locks the table while it reads or copies all rows"
    UNKNOWN = "runs code or SQL, whose duration depends on the rows"


POSTGRESQL: tuple[tuple[tuple[type[Operation], ...], MigrationEffect], ...] = (
    (
        (
            AddIndexConcurrently,
            RemoveIndexConcurrently,
            SetFillFactor,
            ValidateConstraint,
            migrations.AlterModelOptions,
            migrations.AlterModelManagers,
        ),
        MigrationEffect.NO_LOCK,
    ),
    ((AddConstraintNotValid,), MigrationEffect.SHORT_LOCK),
    ((migrations.RunPython, migrations.RunSQL), MigrationEffect.UNKNOWN),
    ((migrations.AddIndex, migrations.AddConstraint, migrations.AlterField), MigrationEffect.LONG_LOCK),
)
SQLITE: tuple[tuple[tuple[type[Operation], ...], MigrationEffect], ...] = (
    (
        (
            SetFillFactor,
            migrations.AlterModelOptions,
            migrations.AlterModelManagers,
        ),
        MigrationEffect.NO_LOCK,
    ),
    ((RemoveIndexConcurrently, migrations.RemoveIndex), MigrationEffect.SHORT_LOCK),
    ((migrations.RunPython, migrations.RunSQL), MigrationEffect.UNKNOWN),
    # SQLite copies the table for most changes.
    (
        (
            AddIndexConcurrently,
            ValidateConstraint,
            migrations.AddIndex,
            migrations.AddConstraint,
            migrations.RemoveConstraint,
            migrations.AlterUniqueTogether,
            migrations.AddField,
            migrations.AlterField,
            migrations.RemoveField,
        ),
        MigrationEffect.LONG_LOCK,
    ),
)
"""Effects by the class of the operation. The first line that fits counts; other operations lock a table briefly."""


@dataclass(frozen=True)
class TableEffect:
    """The heaviest effect of a migration on one table."""

    table: str
    effect: MigrationEffect


def table_effects(migration: migrations.Migration, state: ProjectState, vendor: str) -> list[TableEffect]:
    """Return the effects on tables that exist before the migration. `state`: the models before it; it is changed."""
    heaviest: dict[str, MigrationEffect] = {}
    created: set[str] = set()
    for operation in _database_operations(migration.operations):
        if isinstance(operation, migrations.CreateModel):
            created.add(operation.name_lower)
        elif _model_name(operation) not in created:
            table, effect = _table(operation, migration.app_label, state), effect_of(operation, vendor)
            heaviest[table] = max(heaviest.get(table, effect), effect, key=list(MigrationEffect).index)
    migration.mutate_state(state, preserve=False)
    return [TableEffect(table, effect) for table, effect in heaviest.items()]


def effect_of(operation: Operation, vendor: str) -> MigrationEffect:
    """Return the effect of an operation on its table."""
    lines = POSTGRESQL if vendor == "postgresql" else SQLITE
    return next((effect for classes, effect in lines if isinstance(operation, classes)), MigrationEffect.SHORT_LOCK)


def _database_operations(operations: Sequence[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from _database_operations(operation.database_operations)
        else:
            yield operation


def _model_name(operation: Operation) -> str:
    name = getattr(operation, "model_name", None) or getattr(operation, "name", None)
    return name.lower() if isinstance(name, str) else ""


def _table(operation: Operation, app_label: str, state: ProjectState) -> str:
    model = state.models.get((app_label, _model_name(operation)))
    return str(model.options.get("db_table") or f"{app_label}_{model.name_lower}") if model else WHOLE_APP
