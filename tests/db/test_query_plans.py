"""The plans of the statements that claims and reports execute, on PostgreSQL."""

import json
import re
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from conductor_app.db import statements
from conductor_app.db.statements import FOLDER, HEADER, PARAMETER, NamedStatement
from conductor_app.payloads.store import PAYLOADS_SQL
from conductor_app.runs.store import data, due_rows, loading, outbox, writing
from conductor_app.taskcluster import store as standalone
from conductor_app.tasks import gates, shares
from conductor_app.tasks import store as claims
from tests.builders import simple, step
from tests.scenario import Scenario

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite plans each statement for its values."),
]


def test_prepared_statements_use_generic_plans():
    [(mode,)] = statements.fetch("SELECT current_setting('plan_cache_mode')")

    assert mode == "force_generic_plan"


def test_a_claim_reads_only_the_first_attempts_of_its_queue(clock):
    for _ in range(3):
        Scenario(clock, step("a"))
    fill_queues()

    assert_reads_queue_by_index(plan_of(claims.CLAIMS_SQL["claim_and_load"]))


def test_a_lookup_reads_only_the_attempts_of_the_queues_of_waiting_polls(clock):
    Scenario(clock, step("a"))
    find_next_visible = claims.CLAIMS_SQL["find_next_visible"]
    assert plan_of(find_next_visible)[0]["Total Cost"] < JIT_ABOVE_COST
    fill_queues()

    nodes = plan_of(find_next_visible)

    assert_reads_queue_by_index(nodes)
    assert nodes[0]["Total Cost"] < JIT_ABOVE_COST


def test_a_task_by_update_v2_reads_no_large_table_completely(clock, api):
    for _ in range(3):
        Scenario(clock, step("a"))
    fill_queues()
    api.define(simple("pay"), simple("ship"))
    api.start(), api.start()
    [task] = api.poll("pay")
    ids = {name: task[name] for name in ("workflowInstanceId", "taskId")}

    with CaptureQueriesContext(connection) as captured:
        api.start()
        reply = api.post("/tasks/update-v2", {**ids, "status": "COMPLETED", "workerId": "ann"})

    assert reply.json()["taskDefName"] == "pay"
    executed = [each["sql"] for each in captured if each["sql"].startswith(("SELECT", "WITH", "UPDATE", "DELETE"))]
    assert [sql for sql in executed if sql.startswith("WITH candidates AS MATERIALIZED")]
    assert [sql for sql in executed if large_tables_scanned(nodes_of(sql))] == []


def large_tables_scanned(nodes: list[dict]) -> list[str]:
    return [
        node["Relation Name"]
        for node in nodes
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE_TABLES
    ]


STATEMENTS = {
    **claims.CLAIMS_SQL,
    **shares.SHARES_SQL,
    **standalone.STANDALONE_CLAIMS_SQL,
    **standalone.STANDALONE_TASKS_SQL,
    **standalone.GROUPS_SQL,
    **loading.RUNS_SQL,
    **data.DATA_SQL,
    **writing.WRITING_SQL,
    **loading.TREE_SQL,
    **due_rows.DUE_ROWS_SQL,
    **data.INBOX_SQL,
    **outbox.MESSAGES_SQL,
    **PAYLOADS_SQL,
    **{statement.name: statement for statement in (gates.COUNT_LEASED, gates.COUNT_STARTS)},
}


def test_each_statement_has_a_name_a_description_and_its_indexes():
    named = [
        (kind, name)
        for file in sorted(Path(str(FOLDER)).rglob("*.sql"))
        for kind, name, text in zip(*[iter(HEADER.split(file.read_text())[1:])] * 3, strict=True)
        if kind == "name"
    ]

    assert len(named) == len(set(named))
    assert {name for _, name in named} | {"count_leased", "count_starts"} == set(STATEMENTS)
    assert [name for name, statement in STATEMENTS.items() if not (statement.indexes and statement.description)] == []


def test_each_statement_uses_the_indexes_of_its_comment(clock):
    for _ in range(3):
        Scenario(clock, step("a"))
    fill_queues()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conductor_attempt SET run_id = NULL WHERE queue IN ('queue1', 'queue2', 'queue3', 'queue4')"
        )
        cursor.execute("UPDATE conductor_run SET status = 'COMPLETED', ended_at = 1 WHERE id LIKE '%7'")
        cursor.execute("UPDATE conductor_attempt SET status = 'LEASED' WHERE queue IN ('queue5', 'queue6')")
        cursor.execute(
            "INSERT INTO conductor_dependency (task_id, required_id, is_satisfied, expires_at) "
            "SELECT 't' || n / 10, 'r' || n % 1000, FALSE, 0 FROM generate_series(1, 5000) n"
        )
        cursor.execute(
            "INSERT INTO conductor_pulsemessage "
            "(task_id, group_id, name, key, routes, payload, sent_at, due_at, tries, error) "
            "SELECT 't' || n / 10, 'g' || n % 5, '', '', '[]', '{}', n, n, 0, '' FROM generate_series(1, 5000) n"
        )
        cursor.execute(
            "INSERT INTO conductor_fairshare (queue, priority, key, place, served_at) "
            "SELECT 'q' || n % 10, 0, 'k' || n, n, n FROM generate_series(1, 5000) n"
        )
        cursor.execute("ANALYZE conductor_run, conductor_attempt, conductor_dependency, conductor_pulsemessage")
        cursor.execute("ANALYZE conductor_fairshare")
        # The other tables are small.
        for way in ("seqscan", "hashjoin", "mergejoin"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
        plans = {name: plan_of(statement) for name, statement in STATEMENTS.items()}
        primary_keys = primary_keys_of_tables()

    used = {name: set().union(*map(indexes_read, nodes)) for name, nodes in plans.items()}
    used = {name: {primary_keys.get(index, index) for index in indexes} for name, indexes in used.items()}
    missing = {name: indexes_of(statement) - used[name] for name, statement in STATEMENTS.items()}
    assert {name: (indexes, used[name]) for name, indexes in missing.items() if indexes} == {}


@pytest.mark.parametrize("name", ["claim_and_load", "lock_candidates", "lock_candidates_except", "find_next_visible"])
def test_claims_do_not_sort_a_queue_that_was_empty_when_postgresql_counted_it(clock, name):
    Scenario(clock, step("a"))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE conductor_attempt SET status = 'COMPLETED', ended_at = 1")
        fill_queues()
        cursor.execute(
            "INSERT INTO conductor_attempt SELECT r.* "
            "FROM (SELECT * FROM conductor_attempt LIMIT 1) a, generate_series(1, 5000) n, "
            "jsonb_populate_record(NULL::conductor_attempt, to_jsonb(a) || jsonb_build_object('id', 'p' || n, "
            "'status', 'PENDING', 'ended_at', NULL, 'task_id', 'p' || n, 'queue', 'queue1')) r"
        )
        nodes = plan_of(STATEMENTS[name])

    assert_reads_queue_by_index(nodes)
    assert {node.get("Index Name") for node in nodes} & {"one_open_attempt_per_task", "attempt_with_timer"} == set()


@pytest.mark.parametrize(
    "name", ["claim_and_load", "lock_candidates", "add_keys", "lock_attempts_of_key", "find_due_attempt_of_key"]
)
def test_claims_read_no_table_completely_while_all_attempts_wait_in_one_queue(clock, name):
    Scenario(clock, step("a"), fairnessKey="one")
    fill_queues()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE conductor_attempt SET queue = 'queue1'")
        cursor.execute("VACUUM ANALYZE conductor_attempt")

    nodes = plan_of(STATEMENTS[name])

    assert large_tables_scanned(nodes) == []
    large = [node for node in nodes if node["Node Type"] == "Sort" and node["Plan Rows"] > SMALL_PART]
    assert large == []
    indexes = {node.get("Index Name") for node in nodes if node.get("Relation Name") == "conductor_attempt"}
    assert indexes & indexes_of(STATEMENTS[name])


SMALL_PART = 1_000
"""More rows than a claim may sort while 20,000 attempts wait."""


def indexes_read(node: dict) -> set[str]:
    """Return the indexes that a node of a plan reads: also those that find the row of an INSERT … ON CONFLICT."""
    return {node.get("Index Name"), *node.get("Conflict Arbiter Indexes", ())}


def indexes_of(statement: NamedStatement) -> set[str]:
    return set() if statement.indexes.startswith("none: ") else set(statement.indexes.split(", "))


def primary_keys_of_tables() -> dict[str, str]:
    """Return the primary keys by the names of their indexes, which depend on the first names of the tables.

    Django adds an index on the same column for LIKE, which serves equality as well.
    """
    rows = statements.fetch(
        "SELECT i.indexrelid::regclass::text, i.indrelid::regclass::text FROM pg_index i "
        "JOIN pg_index p ON p.indrelid = i.indrelid AND p.indisprimary AND p.indkey = i.indkey AND i.indpred IS NULL"
    )
    return {index: f"primary key of {table}" for index, table in rows}


def test_each_statement_can_be_pasted_into_psql():
    with connection.cursor() as cursor:
        for statement in STATEMENTS.values():
            cursor.execute(
                "EXPLAIN " + VARIABLE.sub(lambda match: "'[]'" if match[1] == "queues" else "'1'", statement.psql())
            )


VARIABLE = re.compile(r":'(\w+)'")


def assert_reads_queue_by_index(nodes: list[dict]) -> None:
    indexes = {node.get("Index Name") for node in nodes if node.get("Relation Name") == "conductor_attempt"}
    assert "attempt_to_claim" in indexes, nodes
    assert large_tables_scanned(nodes) == []


JIT_ABOVE_COST = 100_000
"""PostgreSQL's default of the cost above which it compiles a statement, which takes longer than most statements."""
LARGE_TABLES = ("conductor_attempt", "conductor_task", "conductor_run")


def fill_queues() -> None:
    """Add 20,000 pending attempts of ten queues, as many runs and tasks, and let PostgreSQL count them."""
    with connection.cursor() as cursor:
        for table in LARGE_TABLES:
            columns = column_names(table)
            values = ", ".join({"id": "o.id || '-' || n"}.get(name, f'o."{name}"') for name in columns)
            if table == "conductor_task":
                values = values.replace('o."ref"', "o.ref || n").replace('o."attempt_id"', "o.attempt_id || '-' || n")
            elif table == "conductor_attempt":
                values = values.replace('o."task_id"', "o.task_id || '-' || n").replace(
                    'o."queue"', "'queue' || n % 10"
                )
            names = ", ".join(f'"{name}"' for name in columns)
            cursor.execute(
                f"INSERT INTO {table} ({names}) SELECT {values} FROM "
                f"(SELECT * FROM {table} ORDER BY id LIMIT 1) o, generate_series(1, 20000) n"
            )
            cursor.execute(f"ANALYZE {table}")


def column_names(table: str) -> list[str]:
    with connection.cursor() as cursor:
        return [column.name for column in connection.introspection.get_table_description(cursor, table)]


def plan_of(statement: NamedStatement) -> list[dict]:
    """Return the nodes of the generic plan of a statement."""
    numbers = {}
    sql = PARAMETER.sub(
        lambda match: f"${numbers.setdefault(match[1] or match[2], len(numbers) + 1)}", statement.text("postgresql")
    )
    return nodes_of(sql, "GENERIC_PLAN, ")


def nodes_of(sql: str, options: str = "") -> list[dict]:
    """Return the nodes of the plan of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN ({options}FORMAT JSON) {sql}")
        [(plan,)] = cursor.fetchall()
    waiting = [(json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]]
    found = []
    while waiting:
        found.append(node := waiting.pop())
        waiting += node.get("Plans", [])
    return found
