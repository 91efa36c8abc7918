"""Query plans of searches: each search is answered by a selective index."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.bulk.selections import selected_runs
from conductor_app.db.statements import fetch
from conductor_app.runs.models import Attempt, Run
from conductor_app.runs.search import RUNS, TASKS, Search, SearchQuery
from conductor_app.runs.search.tables import searchable_attempts
from conductor_app.taskcluster.commands import tasks as task_commands

EXPECTED_INDEXES = {
    "workflows: freeText=nowhere": {
        "run_by_start",
        "run_by_correlation",
        "one_run_per_idempotency_key",
        "conductor_run_1",
    },
    "workflows: reasonForIncompletion = '*nowhere*'": {"run_with_reason_by_start"},
    "tasks: status = IN_PROGRESS": {"one_open_attempt_per_task"},
    "tasks: status = FAILED": {"attempt_ended_badly"},
    "tasks: taskDefName = pay AND status = FAILED": {"attempt_bad_by_name"},
    "tasks: taskDefName = pay AND status = COMPLETED": {"attempt_by_name"},
    "tasks: retryCount > 0": {"conductor_attempt_1"},
}
ID = "fN1SbArXTPSVFNUvaOlinQ"
pytestmark = pytest.mark.django_db


def search_page(search):
    """Return the first page of a search over all rows."""
    kind, _, query = search.partition(": ")
    text = query.partition("freeText=")[2]
    if kind == "tasks":
        return Search(searchable_attempts(), SearchQuery(TASKS, query)).page(0, 100)
    return Search(Run.objects.all(), SearchQuery(RUNS, "" if text else query, text)).page(0, 100)


def explain_indexes(statement, table):
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + statement.replace("%", "%%"), [])
        lines = [line for *_, line in cursor.fetchall() if table in line.split()]
    return {line.split("INDEX ")[-1].split()[0].removeprefix("sqlite_autoindex_") for line in lines}


@pytest.mark.parametrize("search", EXPECTED_INDEXES)
def test_a_search_reads_the_index_that_lists_few_rows(search, monkeypatch):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL chooses its plans by table statistics.")
    monkeypatch.setattr(Search, "nth_newest", lambda query, *_: 1 if query.newest == "created_at" else "0")
    with CaptureQueriesContext(connection) as captured:
        search_page(search)

    table = "conductor_attempt" if search.startswith("tasks") else "conductor_run"
    statements = [each["sql"] for each in captured if "IS NULL LIMIT 1" not in each["sql"]]
    assert set().union(*(explain_indexes(statement, table) for statement in statements)) == EXPECTED_INDEXES[search]


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL chooses its plans by table statistics.")
def test_the_runs_of_a_failure_group_are_found_without_reading_the_failures_of_others():
    with CaptureQueriesContext(connection) as captured:
        list(selected_runs({"failure_group": 7}))

    failures = "V0"  # the alias of the table in the inner query
    assert explain_indexes(captured[-1]["sql"], failures) == {"failure_of_group"}


def test_standalone_tasks_are_not_found(clock):
    fields = {"id": ID, "group_id": ID, "scheduler_id": "-", "project_id": "none", "queue": "a/b", "priority": 1}
    limits = {"deadline_at": clock.now() + 1, "expires_at": clock.now() + 2, "retries": 0, "requires": ()}
    other_fields = {"accepts_failure": False, "tags": {}, "routes": (), "name": "n", "definition": {}}
    task_commands.create_task(task_commands.NewTask(**fields, **limits, **other_fields))

    assert (Attempt.objects.count(), search_page("tasks: ").ids) == (1, [])


def test_a_search_by_task_finds_failures_of_any_age_and_other_results_among_the_newest():
    assert SearchQuery(TASKS, "taskDefName = pay AND status IN (FAILED, CANCELED)").scan_limit is None
    assert SearchQuery(TASKS, "taskDefName = pay AND status = COMPLETED").scan_limit is not None
    assert SearchQuery(TASKS, "workerId = w AND status = FAILED").scan_limit is not None


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite always uses nested loops")
def test_counting_tasks_joins_runs_by_primary_key():
    search = Search(searchable_attempts(), SearchQuery(TASKS, "referenceTaskName = pay"))
    with CaptureQueriesContext(connection) as captured:
        search.count(0)

    statements = [query["sql"] for query in captured]
    [counted] = [place for place, sql in enumerate(statements) if sql.startswith("SELECT COUNT")]
    assert statements[counted - 1].startswith("SET LOCAL enable_hashjoin = 0;")
    assert fetch("SHOW enable_hashjoin") == [("on",)]
