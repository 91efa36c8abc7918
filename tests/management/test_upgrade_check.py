"""`conductor-app check`: what would make an upgrade slow or impossible."""

import tomllib
from pathlib import Path

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from conductor_app.management import upgrade_check
from conductor_app.management.migration_effects import MigrationEffect, TableEffect, effect_of, table_effects
from conductor_app.management.upgrade_check import check_migrations, check_variables, check_versions, table_size
from conductor_app.models.migration_operations import AddIndexWithoutLock, SetFillFactor

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


LATEST = ("0018_drop_run_with_reason", "0019_alert_targets_and_digests", "0020_targets_of_alerts")


@pytest.mark.django_db
def test_an_unapplied_migration_is_listed_with_its_table_and_size():
    MigrationRecorder.Migration.objects.filter(app="conductor", name__in=LATEST).delete()

    finding, *_ = check_migrations(connection)

    assert finding.text.startswith("conductor.0018_drop_run_with_reason: conductor_run (about ")
    assert not finding.is_problem


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
