"""Rules for migrations: a process of the previous version keeps working during and after a migration.

Migrations only add. A release first stops reading and writing what a later release removes, and a renamed column is
added under its new name. An added column must accept rows of a process of the previous version: it is nullable or has a
database default (`db_default`).
"""

from importlib import import_module
from pathlib import Path

import pytest
from django.db import migrations, models

import conductor_app.migrations
from conductor_app.models.migration_operations import AddIndexWithoutLock

REMOVES = (
    migrations.RemoveField,
    migrations.DeleteModel,
    migrations.RenameField,
    migrations.RenameModel,
    migrations.AlterModelTable,
)
IN_TWO_STEPS = {"0002_standard_names"}
"""Migrations that remove what the previous version no longer uses. These predate the first release."""
FIRST_RELEASE = None
"""The last migration of the first version that was released; before it, no older process could be running."""


def complaint(operation, is_released=True, new_models=frozenset()):
    """Return why a process of the previous version would fail after the operation; None if it would not."""
    if isinstance(operation, REMOVES):
        return f"{type(operation).__name__} takes away what an older process reads"
    is_index = isinstance(operation, migrations.AddIndex) and operation.model_name not in new_models
    if is_index and not isinstance(operation, AddIndexWithoutLock):
        return f"writers of the table wait until {operation.index.name} is built: use AddIndexWithoutLock"
    if isinstance(operation, migrations.AddField) and is_released and not accepts_old_rows(operation.field):
        return f"an older process cannot write a row without {operation.name}"
    return None


def accepts_old_rows(field):
    return field.null or field.many_to_many or field.db_default is not models.NOT_PROVIDED


def names():
    folder = Path(conductor_app.migrations.__file__).parent
    return sorted(path.stem for path in folder.glob("[0-9]*.py"))


@pytest.mark.parametrize("name", names())
def test_migrations_only_add(name):
    found = import_module(f"conductor_app.migrations.{name}").Migration.operations
    is_released = FIRST_RELEASE is not None and name > FIRST_RELEASE

    new_models = {one.name.lower() for one in found if isinstance(one, migrations.CreateModel)}
    complaints = [why for one in found if (why := complaint(one, is_released, new_models))]
    if name in IN_TWO_STEPS:
        complaints = []

    assert complaints == []


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("run", "reason"),
        migrations.RenameField("run", "reason", "why"),
        migrations.RenameModel("Run", "Life"),
        migrations.DeleteModel("Run"),
        migrations.AddField("run", "colour", models.TextField(default="")),
        migrations.AddIndex("run", models.Index("reason", name="run_by_reason")),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_the_check_detects_changes_that_break_older_processes(operation):
    assert complaint(operation)


@pytest.mark.parametrize("field", [models.TextField(null=True), models.TextField(db_default="")])
def test_a_column_that_older_rows_may_lack_is_welcome(field):
    assert complaint(migrations.AddField("run", "colour", field)) is None
