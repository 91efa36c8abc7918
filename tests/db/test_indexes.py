"""The indexes and checks of the tables that every task writes: each of them costs time and log with every change."""

import pytest
from django.apps import apps
from django.db import connection

from conductor_app.db import statements
from conductor_app.db.fields import IdField
from conductor_app.runs.models import Attempt, HistoryEntry, Run, Task
from conductor_app.runs.store import writing
from tests.builders import step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
on_postgresql = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="reads the catalog of PostgreSQL")

HOT_TABLES = [model._meta.db_table for model in (Run, Task, Attempt, HistoryEntry)]
CHILDREN_OF_RUNS = {Task: "run_id", Attempt: "run_id", HistoryEntry: "run_id"}


@on_postgresql
def test_ids_have_no_second_index_for_patterns():
    columns = {
        f".{model._meta.db_table} USING btree ({field.column} varchar_pattern_ops)"
        for model in apps.get_app_config("conductor").get_models()
        for field in model._meta.concrete_fields
        if isinstance(getattr(field, "target_field", field), IdField)
    }

    definitions = fetch_indexes("tablename LIKE 'conductor%'")

    assert [one for one in definitions if any(column in one for column in columns)] == []


@on_postgresql
@pytest.mark.parametrize("table", HOT_TABLES)
def test_no_index_without_a_condition_is_the_beginning_of_another(table):
    columns = [
        definition.split(" USING btree ")[1].rstrip(")") + ","
        for definition in fetch_indexes(f"tablename = '{table}'")
        if " WHERE " not in definition
    ]

    assert [(one, other) for one in columns for other in columns if one != other and other.startswith(one)] == []


@on_postgresql
def test_reports_check_no_foreign_keys():
    names = ", ".join(f"'{table}'" for table in HOT_TABLES)
    checks = statements.fetch(
        f"SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid::regclass::text IN ({names})"
    )

    assert checks == []


@on_postgresql
@pytest.mark.parametrize("table", ["conductor_run", "conductor_task", "conductor_attempt"])
def test_pages_of_updated_rows_have_room_for_updates(table):
    [(options,)] = statements.fetch("SELECT reloptions::text FROM pg_class WHERE relname = %s", [table])

    assert options == "{fillfactor=90}"


def test_a_removed_run_leaves_no_rows_behind(clock):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").fails()
    scenario.retry()
    other = scenario.starts("order")
    assert all(model.objects.filter(**{key: scenario.id}).exists() for model, key in CHILDREN_OF_RUNS.items())

    writing.delete_run(scenario.id)

    connection.check_constraints()
    assert not Task.objects.exclude(pk__in=Attempt.objects.values("task_id")).exists()
    for model, key in CHILDREN_OF_RUNS.items():
        assert set(model.objects.values_list(key, flat=True)) == {other.id}


def fetch_indexes(condition: str) -> list[str]:
    return [sql for (sql,) in statements.fetch(f"SELECT indexdef FROM pg_indexes WHERE {condition}")]
