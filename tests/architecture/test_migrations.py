"""Rules for migrations: a process of the previous version keeps working during and after a migration.

`make lint` reads the statements on PostgreSQL (django-migration-linter). The rules here are about what statements do
not show. A release first stops reading and writing what a later release removes. The removal is exempt from the linter,
and the docstring of its migration gives the reason.
"""

import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

import conductor_app.migrations
from conductor_app.db.migration_operations import (
    AddIndexWithoutLock,
    AddUniqueConstraintWithoutLock,
    RemoveIndexWithoutLock,
    RemoveUniqueConstraintWithoutLock,
    SetFillFactor,
)

ROOT = Path(__file__).parents[2]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["django_migration_linter"]
DATA = (migrations.RunPython, migrations.RunSQL)
REPEATABLE = (
    AddIndexWithoutLock,
    RemoveIndexWithoutLock,
    AddUniqueConstraintWithoutLock,
    RemoveUniqueConstraintWithoutLock,
    SetFillFactor,
    ValidateConstraint,
)
"""Operations that can be repeated after a failure. Only they may share a migration without a transaction."""


def complaints(migration: type[migrations.Migration]) -> list[str]:
    """Return why the migration would block other processes or could not be repeated after a failure."""
    operations = migration.operations
    found = [
        f"{type(one).__name__} checks all rows under a lock: add it NOT VALID, and validate it in the next migration"
        for one in operations
        if isinstance(one, migrations.AddConstraint)
        and not isinstance(one, AddConstraintNotValid)
        and not isinstance(one.constraint, models.UniqueConstraint)
    ]
    found += [
        "RunSQL without state_operations changes the schema unknown to Django, or data: use RunPython for data"
        for one in operations
        if isinstance(one, migrations.RunSQL) and not one.state_operations
    ]
    has_data = any(isinstance(one, DATA) for one in operations)
    if has_data and not all(isinstance(one, DATA) for one in operations):
        found.append("the locks of the schema change are held while data changes: use two migrations")
    if not migration.atomic and len(operations) > 1 and not all(isinstance(one, REPEATABLE) for one in operations):
        found.append(
            "a failure leaves it half applied, and it cannot be repeated: use one migration for each operation"
        )
    return found


def names() -> list[str]:
    folder = Path(conductor_app.migrations.__file__).parent
    return sorted(path.stem for path in folder.glob("[0-9]*.py"))


@pytest.mark.parametrize("name", [name for name in names() if name not in LINTER["ignore_name"]])
def test_migrations_hold_locks_briefly_and_can_be_repeated(name):
    assert complaints(import_module(f"conductor_app.migrations.{name}").Migration) == []


@pytest.mark.parametrize("name", LINTER["ignore_name"])
def test_an_exempt_migration_gives_the_reason(name):
    assert re.search(r"Exempt from the linter: \w+", import_module(f"conductor_app.migrations.{name}").__doc__ or "")


def test_an_index_of_a_new_column_may_follow_in_a_migration_of_its_own():
    class Indexes(migrations.Migration):
        atomic = False
        operations = [AddIndexWithoutLock("run", models.Index(fields=[field], name=field)) for field in ("a", "b")]

    assert complaints(Indexes) == []


COLUMN = migrations.AddField("run", "color", models.TextField(db_default=""))


@pytest.mark.parametrize(
    ("is_atomic", "operations"),
    [
        (True, [migrations.AddConstraint("run", models.CheckConstraint(condition=models.Q(depth__gte=0), name="c"))]),
        (True, [migrations.RunSQL("CREATE TABLE a (b int)", "DROP TABLE a")]),
        (True, [COLUMN, migrations.RunPython(lambda apps, schema_editor: None, migrations.RunPython.noop)]),
        (False, [COLUMN, AddIndexWithoutLock("run", models.Index(fields=["color"], name="run_by_color"))]),
    ],
    ids=["check", "SQL", "data and schema", "half applied"],
)
def test_the_rules_refuse_what_blocks_or_cannot_be_repeated(is_atomic, operations):
    unsafe = type("Unsafe", (migrations.Migration,), {"atomic": is_atomic, "operations": operations})

    assert len(complaints(unsafe)) == 1


UNSAFE = {
    "rename_column": 'migrations.RenameField("entry", "a", "b")',
    "rename_table": 'migrations.RenameModel("Entry", "Item")',
    "remove_column": 'migrations.RemoveField("entry", "a")',
    "remove_table": 'migrations.DeleteModel("Entry")',
    "change_type": 'migrations.AlterField("entry", "a", models.IntegerField())',
    "no_default_for_older_rows": 'migrations.AddField("entry", "c", models.TextField(default=""))',
    "index_with_lock": 'migrations.AddIndex("entry", models.Index(fields=["a"], name="entry_by_a"))',
    "unique": 'migrations.AddConstraint("entry", models.UniqueConstraint(fields=["a"], name="one_a"))',
    "irreversible": "migrations.RunPython(change)",
}
SAFE = {
    "nullable": 'migrations.AddField("entry", "c", models.TextField(null=True))',
    "default_for_older_rows": 'migrations.AddField("entry", "c", models.TextField(db_default=""))',
    "index_without_lock": 'AddIndexWithoutLock("entry", models.Index(fields=["a"], name="entry_by_a"))',
    "reversible": "migrations.RunPython(change, change)",
    "table": 'migrations.CreateModel("Other", [("id", models.BigAutoField(primary_key=True))])',
}
INITIAL = 'migrations.CreateModel("Entry", [("id", models.BigAutoField(primary_key=True)), ("a", models.TextField())])'
MODULE = """
from django.db import migrations, models
from conductor_app.db.migration_operations import AddIndexWithoutLock

def change(apps, schema_editor):
    pass

class Migration(migrations.Migration):
    atomic = {is_atomic}
    dependencies = {dependencies}
    operations = [{operation}]
"""


def write_app(folder: Path) -> None:
    """Write an app with a migration for each operation: all of them follow the initial one."""
    (folder / "linted_app" / "migrations").mkdir(parents=True)
    for package in ("linted_app", "linted_app/migrations"):
        (folder / package / "__init__.py").touch()
    for name, operation in {"initial": INITIAL, **UNSAFE, **SAFE}.items():
        dependencies = [] if name == "initial" else [("linted_app", "initial")]
        is_atomic = "WithoutLock" not in operation
        text = MODULE.format(is_atomic=is_atomic, dependencies=dependencies, operation=operation)
        (folder / "linted_app" / "migrations" / f"{name}.py").write_text(text)
    (folder / "linted_settings.py").write_text(
        "from conductor_app.settings.linting import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'linted_app']\n"
    )


@pytest.mark.skipif("postgresql" not in settings.DATABASES["default"]["ENGINE"], reason="reads PostgreSQL's statements")
@pytest.mark.django_db
def test_make_lint_refuses_statements_that_break_or_block_processes_of_the_previous_version(tmp_path):
    write_app(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "manage.py", "lintmigrations", "--settings=linted_settings", "--include-apps=linted_app"]

    linter = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    results = dict(re.findall(r"\(linted_app, (\w+)\)\.\.\. (\w+)", linter.stdout))
    assert linter.returncode == 1
    assert results == {**dict.fromkeys(("initial", *SAFE), "OK"), **dict.fromkeys(UNSAFE, "ERR")}
