"""The plans of the statements that claims and reports execute, on PostgreSQL."""

import json

import pytest
from django.db import connection

from conductor_app.store import claims, queue_lookups, statements
from conductor_app.store.pg_pipeline import number_parameters
from tests.builders import step
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

    assert_reads_queue_by_index(plan_of(claims.CLAIM_AND_LOAD))


def test_a_lookup_reads_only_the_attempts_of_the_queues_of_waiting_polls(clock):
    Scenario(clock, step("a"))
    assert plan_of(queue_lookups.NEXT_VISIBLE_OF_QUEUES["postgresql"])[0]["Total Cost"] < JIT_ABOVE_COST
    fill_queues()

    nodes = plan_of(queue_lookups.NEXT_VISIBLE_OF_QUEUES["postgresql"])

    assert_reads_queue_by_index(nodes)
    assert nodes[0]["Total Cost"] < JIT_ABOVE_COST


def assert_reads_queue_by_index(nodes: list[dict]) -> None:
    indexes = {node.get("Index Name") for node in nodes if node.get("Relation Name") == "conductor_attempt"}
    assert "attempt_to_claim" in indexes, nodes
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE_TABLES]


JIT_ABOVE_COST = 100_000
"""PostgreSQL's default of the cost above which it compiles a statement, which takes longer than most statements."""
LARGE_TABLES = ("conductor_attempt", "conductor_task", "conductor_run")


def fill_queues() -> None:
    """Add 20,000 pending attempts of ten queues, and let PostgreSQL count them."""
    with connection.cursor() as cursor:
        for table in ("conductor_task", "conductor_attempt"):
            columns = column_names(table)
            values = ", ".join({"id": "o.id || '-' || n"}.get(name, f'o."{name}"') for name in columns)
            if table == "conductor_task":
                values = values.replace('o."ref"', "o.ref || n").replace('o."attempt_id"', "o.attempt_id || '-' || n")
            else:
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


def plan_of(sql: str) -> list[dict]:
    """Return the nodes of the generic plan of a statement."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (GENERIC_PLAN, FORMAT JSON) " + number_parameters(sql).decode())
        [(plan,)] = cursor.fetchall()
    waiting = [(json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]]
    found = []
    while waiting:
        found.append(node := waiting.pop())
        waiting += node.get("Plans", [])
    return found
