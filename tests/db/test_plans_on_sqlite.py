"""The plans of the statements that starts, claims and reports execute, on SQLite.

SQLite uses an index with a condition only if the statement repeats the condition literally. Otherwise it reads a table
completely, or more of an index than it needs.
"""

import re
from typing import Any

import pytest
from django.db import connection

from conductor_app.db.statements import PARAMETER
from conductor_app.runs.store import loading
from tests.builders import fork, loop, policy, simple, step
from tests.db.test_query_plans import STATEMENTS
from tests.scenario import Scenario

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="reads plans in the format of SQLite"),
]

LARGE_TABLES = ("conductor_run", "conductor_task", "conductor_attempt", "conductor_historyentry")
ALIASED_TABLE = re.compile(rf'"?({"|".join(LARGE_TABLES)})"?(?: (?:AS )?"?(\w+)"?)?')
SCAN = re.compile(r"SCAN (\w+)$")
INDEX = re.compile(r"USING (?:COVERING )?INDEX (\w+)")


class StatementPlans:
    """Records the plans of the statements on large tables."""

    def __init__(self) -> None:
        self.plans: dict[str, list[str]] = {}

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not many and any(table in sql for table in LARGE_TABLES) and not sql.startswith("INSERT"):
            self.explain(sql.replace("%s", "?").replace("%%", "%"), params or ())
        return execute(sql, params, many, context)

    def explain(self, sql: str, params: Any = ()) -> None:
        """Record the plan of a statement."""
        self.plans[sql] = [line for *_, line in connection.connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]

    def complete_scans(self) -> list[str]:
        """Return the statements that read a large table completely."""
        found = []
        for sql, lines in self.plans.items():
            names = {name for match in ALIASED_TABLE.finditer(sql) for name in match.groups()}
            if any((scan := SCAN.match(line)) and scan[1] in names for line in lines):
                found.append(sql)
        return found

    def indexes(self) -> set[str]:
        """Return the names of the indexes that the statements use."""
        return {match[1] for lines in self.plans.values() for line in lines for match in INDEX.finditer(line)}


@pytest.fixture
def plans():
    recorded = StatementPlans()
    with connection.execute_wrapper(recorded):
        yield recorded


def test_a_claim_reads_only_the_waiting_attempts_of_its_queue(clock, plans):
    Scenario(clock, step("a"), step("b")).worker("a").completes()

    claims = [lines for sql, lines in plans.plans.items() if "a.priority DESC" in sql]

    assert claims
    assert all(any("INDEX attempt_to_claim (queue=?)" in line for line in lines) for lines in claims)


def test_starts_claims_and_reports_use_the_indexes_with_conditions(clock, plans):
    limited = policy(concurrent_limit=1, retries=1, delay_seconds=5)
    branches = fork([step("a", policy=limited)], [step("b")])
    scenario = Scenario(clock, *branches, loop("l", step("c"), times=2))
    scenario.worker("a").fails()
    scenario.later(10)
    for name in ("a", "b", "c", "c"):
        scenario.worker(name).completes()

    assert scenario.status == "COMPLETED"
    assert {"attempt_to_claim", "attempt_leased", "attempt_with_timer", "run_to_wake"} <= plans.indexes()
    assert plans.complete_scans() == []


def test_a_task_by_update_v2_claims_the_next_one_by_the_index_of_its_queue(clock, api, plans):
    api.define(simple("pay"), simple("ship"))
    api.start(), api.start()
    [task] = api.poll("pay")
    plans.plans.clear()

    completion = {name: task[name] for name in ("workflowInstanceId", "taskId")} | {"status": "COMPLETED"}
    assert api.post("/tasks/update-v2", completion).json()["taskDefName"] == "pay"

    assert "attempt_to_claim" in plans.indexes()
    assert plans.complete_scans() == []


def test_no_named_statement_reads_a_large_table_completely(plans):
    connection.ensure_connection()
    for statement in STATEMENTS.values():
        sql = PARAMETER.sub("?", statement.text("sqlite"))
        if statement.name != "claim_and_load":  # It is for PostgreSQL.
            plans.explain(sql, [None] * sql.count("?"))

    assert plans.complete_scans() == []
    plans.explain("SELECT id FROM conductor_run WHERE reason = 'x'")
    assert plans.complete_scans() == ["SELECT id FROM conductor_run WHERE reason = 'x'"]


def test_the_size_of_a_tree_of_runs_is_counted_by_its_index(db, plans):
    loading.has_open_descendants("root", 10)

    assert plans.indexes() == {"open_run_by_root"}
