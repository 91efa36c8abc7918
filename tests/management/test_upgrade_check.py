"""`conductor-app check`: what would make an upgrade slow or impossible."""

import shutil
import tomllib
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from conductor_app.db.migration_operations import AddIndexWithoutLock, SetFillFactor
from conductor_app.definitions.models import ResolvedDefinition, WorkflowDefinition
from conductor_app.processes import upgrade_check
from conductor_app.processes import upgrade_check as disk_check
from conductor_app.processes.upgrade_check import (
    BehaviorChange,
    MigrationEffect,
    TableEffect,
    check_definitions,
    check_disks,
    check_folder,
    check_migrations,
    check_variables,
    check_versions,
    copied_tables,
    describe_server_disk,
    effect_of,
    table_effects,
    table_size,
)
from conductor_app.tools.backup import contents as schema_state
from conductor_app.tools.backup.archive import BackupRefused
from tests.builders import step
from tests.scenario import Scenario

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
INDEX = AddIndexWithoutLock("run", models.Index(fields=["status"], name="run_by_status_for_test"))


def texts(findings) -> list[str]:
    return [finding.text for finding in findings]


@pytest.mark.parametrize(
    ("python", "vendor", "database", "problems"),
    [
        ((3, 11, 2), "postgresql", (14, 0), []),
        ((3, 10, 9), "postgresql", (14, 0), ["Python 3.10.9 is too old: install 3.11 or later."]),
        ((3, 12, 0), "postgresql", (13, 9), ["PostgreSQL 13.9 is too old: install 14 or later."]),
        ((3, 12, 0), "sqlite", (3, 34, 1), ["SQLite 3.34.1 is too old: install 3.35 or later."]),
    ],
)
def test_versions_that_are_too_old_are_problems(python, vendor, database, problems):
    findings = list(check_versions(python, vendor, database))

    assert texts(findings) == problems
    assert all(finding.is_problem for finding in findings)


def test_the_oldest_python_is_that_of_the_package():
    assert PROJECT["requires-python"].startswith(f">={'.'.join(map(str, upgrade_check.OLDEST_PYTHON))},")


def test_a_removed_variable_is_a_problem_and_a_misspelled_one_a_note():
    findings = list(
        check_variables(["WEB_WORKERZ", "OLD_NAME", "WEB_WORKERS", "PATH"], ["WEB_WORKERS"], {"OLD_NAME": "Set NEW."})
    )

    assert [(finding.text, finding.is_problem) for finding in findings] == [
        ("The environment variable OLD_NAME has no effect any more: Set NEW.", True),
        ("The environment variable WEB_WORKERZ is unknown. Did you mean WEB_WORKERS?", False),
    ]


@pytest.mark.parametrize(
    ("operation", "postgresql", "sqlite"),
    [
        (INDEX, MigrationEffect.NO_LOCK, MigrationEffect.LONG_LOCK),
        (SetFillFactor("run", 90), MigrationEffect.NO_LOCK, MigrationEffect.NO_LOCK),
        (
            migrations.AddField("run", "a", models.TextField(null=True)),
            MigrationEffect.SHORT_LOCK,
            MigrationEffect.LONG_LOCK,
        ),
        (migrations.AlterField("run", "a", models.TextField()), MigrationEffect.LONG_LOCK, MigrationEffect.LONG_LOCK),
        (migrations.RunPython(lambda apps, editor: None), MigrationEffect.UNKNOWN, MigrationEffect.UNKNOWN),
    ],
)
def test_the_effect_of_an_operation_depends_on_the_database(operation, postgresql, sqlite):
    assert (effect_of(operation, "postgresql"), effect_of(operation, "sqlite")) == (postgresql, sqlite)


@pytest.mark.django_db
def test_a_migration_names_existing_tables_with_their_heaviest_effect():
    migration = migrations.Migration("next", "conductor")
    migration.operations = [
        SetFillFactor("run", 80),
        migrations.AddIndex("run", models.Index(fields=["status"], name="run_by_status_for_test")),
        migrations.CreateModel("Fresh", [("id", models.BigAutoField(primary_key=True))]),
        migrations.AddField("fresh", "name", models.TextField(null=True)),
    ]

    effects = table_effects(migration, MigrationLoader(connection).project_state(), "postgresql")

    assert effects == [TableEffect("conductor_run", MigrationEffect.LONG_LOCK)]


@pytest.mark.django_db
def test_an_up_to_date_database_needs_nothing():
    assert list(check_migrations(connection)) == []


def forget_latest_migrations() -> None:
    """Delete the records of all migrations after the first one."""
    names = [name for app, name in MigrationLoader(None).disk_migrations if app == "conductor" and name > "0002"]
    MigrationRecorder.Migration.objects.filter(app="conductor", name__in=[*names, "0034_overdue_items"]).delete()


@pytest.mark.django_db
def test_an_unapplied_migration_is_listed_with_its_table_and_size():
    forget_latest_migrations()

    finding, *_ = check_migrations(connection)

    assert finding.text.startswith("conductor.0002_overdue_items: conductor_message (about ")
    assert not finding.is_problem


@pytest.mark.django_db
def test_a_database_that_lacks_a_replaced_migration_is_refused():
    MigrationRecorder.Migration.objects.get(app="conductor", name="0033_audit_actions").delete()

    (finding,) = check_migrations(connection)
    with pytest.raises(CommandError) as refused:
        call_command("migrate")
    with pytest.raises(BackupRefused):
        schema_state.product_tables(schema_state.read_migrations(connection))

    assert finding.is_problem
    assert finding.text == str(refused.value)
    assert finding.text.startswith(
        "The database is too old: conductor.0001_initial replaces conductor.0033_audit_actions"
    )


@pytest.mark.django_db
def test_a_lock_while_all_rows_are_read_is_a_problem_only_for_a_large_table(monkeypatch):
    effects = [TableEffect("conductor_run", MigrationEffect.LONG_LOCK)]

    assert [each.is_problem for each in upgrade_check.describe_migration("next", effects, connection)] == [False]
    monkeypatch.setattr(upgrade_check, "LARGE_TABLE_ROWS", 0)
    assert [each.is_problem for each in upgrade_check.describe_migration("next", effects, connection)] == [True]


@pytest.mark.django_db
def test_a_database_of_a_newer_version_is_a_problem():
    MigrationRecorder(connection).record_applied("conductor", "9999_future")

    (finding,) = check_migrations(connection)

    assert finding.text == "The database has the migration conductor.9999_future of a newer version."
    assert finding.is_problem


@pytest.mark.django_db
def test_the_size_of_a_table_counts_its_rows():
    MigrationRecorder(connection).record_applied("other", "0001")

    assert table_size(connection, "no_such_table") is None
    assert table_size(connection, "django_migrations").rows > 0 or connection.vendor == "postgresql"


@pytest.mark.django_db
def test_definitions_that_this_version_continues_need_nothing(clock):
    Scenario(clock, step("pay"))

    assert list(check_definitions()) == []


@pytest.mark.django_db
def test_a_definition_of_open_runs_that_this_version_cannot_read_is_a_problem(clock):
    scenario = Scenario(clock, step("pay"), name="order")
    scenario.starts("order")
    ResolvedDefinition.objects.update(document={"tasks": 3})

    (finding,) = check_definitions()

    assert finding.text.startswith("This version cannot continue 2 open runs of order version 1: ")
    assert finding.is_problem


@pytest.mark.django_db
def test_ended_runs_of_such_a_definition_are_no_problem(clock):
    Scenario(clock, step("pay"), name="order").terminate()
    ResolvedDefinition.objects.update(document={"tasks": 3})

    assert list(check_definitions()) == []


@pytest.mark.django_db
def test_a_change_of_behavior_names_the_runs_and_their_steps(clock):
    Scenario(clock, step("pay"), step("send"), name="order")
    change = BehaviorChange("it waits longer.", lambda document: document["taskReferenceName"] == "send")

    (finding,) = check_definitions([change])

    assert finding.text == "1 open run of order version 1: step send: it waits longer."
    assert not finding.is_problem


@pytest.mark.django_db
def test_a_definition_that_this_version_refuses_to_save_is_a_note(clock):
    Scenario(clock, step("pay"), name="order").terminate()
    WorkflowDefinition.objects.update(document={"name": "order", "version": 1, "tasks": []})

    (finding,) = check_definitions()

    assert finding.text.startswith("This version refuses to save order version 1 unchanged: ")
    assert not finding.is_problem


def test_a_folder_with_too_little_space_is_a_problem(tmp_path):
    free = shutil.disk_usage(tmp_path).free

    assert list(check_folder(tmp_path / "missing", 10 * free)) == []
    (finding,) = check_folder(tmp_path, 10 * free)
    assert finding.is_problem
    assert f"migrations need up to {10 * free / 1024 / 1024:,.0f} MB" in finding.text


@pytest.mark.django_db
def test_disks_with_enough_space_need_nothing(monkeypatch):
    monkeypatch.setattr(disk_check, "LEAST_FREE_BYTES", 0)

    assert copied_tables(connection) == []
    assert list(check_disks(connection)) == []


@pytest.mark.django_db
def test_tables_that_migrations_copy_need_space():
    forget_latest_migrations()

    assert ("conductor_attempt" in copied_tables(connection)) == (connection.vendor == "sqlite")


@pytest.mark.django_db
def test_the_space_that_the_database_server_needs_is_a_note(monkeypatch):
    monkeypatch.setattr(disk_check, "table_size", lambda connection, table: upgrade_check.TableSize(5, 3 * 1024 * 1024))

    (finding,) = describe_server_disk(connection, ["conductor_run", "conductor_task"])

    assert "conductor_run, conductor_task: the database server needs 6 MB" in finding.text
    assert not finding.is_problem
