"""The JDBC task: queries, updates, rejected statements, and information that it never reveals."""

import sqlite3
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from django.db import connection

from conductor_app.system_tasks.sql import Jdbc, JdbcSettings, SqlLimits

TABLE = "CREATE TABLE sql_task_item (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC(10, 2))"
ROWS = "INSERT INTO sql_task_item VALUES (1, 'pen', 1.5), (2, 'ink', 7), (3, NULL, NULL)"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> Iterator[str]:
    """Yield the URL of a database with a table of three items."""
    if request.param == "sqlite":
        path = tmp_path / "it's 100% mine?.db"
        with sqlite3.connect(path) as made:
            made.execute(TABLE)
            made.execute(ROWS)
        yield f"sqlite://{path}"
        return
    if connection.vendor != "postgresql":
        pytest.skip("there is no PostgreSQL in this profile")
    request.getfixturevalue("django_db_setup")
    with psycopg.connect(postgresql_url(), autocommit=True) as made:
        made.execute(TABLE)
        made.execute(ROWS)
        yield postgresql_url()
        made.execute("DROP TABLE sql_task_item")


def postgresql_url() -> str:
    """Return the URL of the test database."""
    found = connection.settings_dict
    who = quote(found["USER"]) + (f":{quote(found['PASSWORD'])}" if found["PASSWORD"] else "")
    host = {"host": found["HOST"], "port": found["PORT"], **found["OPTIONS"]}
    rest = "&".join(f"{name}={quote(str(host[name]))}" for name in ("host", "port") if host[name])
    return f"postgresql://{who}@/{quote(found['NAME'])}?{rest}"


@pytest.fixture
def run(url):
    """Return a function that executes one task on that database."""

    def run(statement, *parameters, limits=None, **inputs):
        worker = Jdbc(lambda: JdbcSettings({"shop": url}, limits or SqlLimits(seconds=20)))
        given = {"connectionId": "shop", "statement": statement, "parameters": list(parameters), **inputs}
        return worker.perform(given)

    return run


def count(run) -> int:
    return run("SELECT COUNT(*) AS n FROM sql_task_item").output["result"][0]["n"]


def test_a_select_returns_rows_by_column_name(run):
    outcome = run("SELECT id, name FROM sql_task_item ORDER BY id")

    assert (outcome.status, outcome.reason) == ("COMPLETED", "")
    assert outcome.output == {"result": [{"id": 1, "name": "pen"}, {"id": 2, "name": "ink"}, {"id": 3, "name": None}]}


def test_no_rows_are_a_result_too(run):
    assert run("SELECT id FROM sql_task_item WHERE id > ?", 10).output == {"result": []}


def test_parameters_of_any_content_are_bound(run):
    outcome = run("SELECT id FROM sql_task_item WHERE name = ? OR name = ?", "ink", "x' OR '1' = '1")

    assert outcome.output == {"result": [{"id": 2}]}


def test_columns_with_equal_names_are_numbered(run):
    assert run("SELECT 1 AS a, 2 AS a, 3 AS a").output == {"result": [{"a": 1, "a_2": 2, "a_3": 3}]}


def test_an_update_returns_its_row_count(run):
    outcome = run("UPDATE sql_task_item SET name = ? WHERE id < ?", "all", 3, type="UPDATE", expectedUpdateCount=2)

    assert (outcome.status, outcome.output) == ("COMPLETED", {"update_count": 2})
    assert run("SELECT DISTINCT name FROM sql_task_item WHERE id < 3").output == {"result": [{"name": "all"}]}


def test_an_update_with_an_unexpected_row_count_is_rolled_back(run):
    outcome = run("DELETE FROM sql_task_item WHERE id < ?", 3, type="UPDATE", expectedUpdateCount=1)

    assert (outcome.status, outcome.output) == ("FAILED", {"update_count": 2})
    assert "changed 2 rows instead of 1 and was rolled back" in outcome.reason
    assert count(run) == 3


CHANGES = {
    "a change": "DELETE FROM sql_task_item",
    "a change that gives rows": "DELETE FROM sql_task_item RETURNING id",
    "a second statement": "SELECT 1; DELETE FROM sql_task_item",
    "a way out of the transaction": "SELECT 1; COMMIT; DELETE FROM sql_task_item",
    "the end of the transaction": "COMMIT",
    "a comment before it": "/* SELECT */ UPDATE sql_task_item SET id = id + 10",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES)
def test_a_select_is_read_only(run, statement):
    outcome = run(statement)

    assert not outcome.output.get("result")
    assert run("SELECT id FROM sql_task_item ORDER BY id").output == {"result": [{"id": 1}, {"id": 2}, {"id": 3}]}


def test_an_update_is_one_statement(run):
    outcome = run("UPDATE sql_task_item SET name = 'x'; DELETE FROM sql_task_item", type="UPDATE")

    assert outcome.status != "COMPLETED"
    assert count(run) == 3


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"


@pytest.mark.parametrize("kind", ["SELECT", "UPDATE"])
def test_a_slow_statement_is_canceled(run, kind):
    outcome = run(ENDLESS.format("COUNT(*)"), type=kind, limits=SqlLimits(seconds=0.3))

    assert (outcome.status, outcome.reason) == (
        "FAILED",
        "The SQL statement failed: The statement took longer than 0.3 s.",
    )


@pytest.mark.parametrize(
    ("limit", "said"), [("max_rows", "more than 500 rows"), ("max_bytes", "longer than 500 bytes")]
)
def test_a_result_beyond_the_limits_is_not_read_to_its_end(run, limit, said):
    outcome = run(ENDLESS.format("i"), limits=SqlLimits(**{"seconds": 20, limit: 500}))

    assert (outcome.status, said in outcome.reason) == ("FAILED", True)


def test_an_invalid_statement_fails_with_the_message_of_the_database(run):
    outcome = run("SELECT nothing FROM sql_task_item")

    assert outcome.status == "FAILED"
    assert "nothing" in outcome.reason


MISTAKES = {
    "no statement": ({"statement": " "}, "statement is missing"),
    "a NUL": ({"statement": "SELECT '\0'"}, "NUL"),
    "another type": ({"type": "MERGE"}, "SELECT or UPDATE"),
    "parameters that are no list": ({"parameters": {"a": 1}}, "must be a list"),
    "too few parameters": ({"statement": "SELECT ?"}, "has 1 parameters"),
    "a count in words": ({"expectedUpdateCount": "many"}, "whole number"),
    "no connection": ({"connectionId": None}, "connectionId"),
    "a connection nobody named": ({"connectionId": "hr"}, "has no connection 'hr'"),
}


@pytest.mark.parametrize(("mistake", "said"), MISTAKES.values(), ids=MISTAKES)
def test_an_input_that_describes_no_statement_fails_for_good(mistake, said):
    worker = Jdbc(lambda: JdbcSettings({"shop": "sqlite:///nowhere/at/all"}))

    outcome = worker.perform({"connectionId": "shop", "statement": "SELECT 1", **mistake})

    assert (outcome.status, said in outcome.reason) == ("FAILED_WITH_TERMINAL_ERROR", True)


def test_the_connection_may_also_be_named_as_an_integration(url):
    worker = Jdbc(lambda: JdbcSettings({"shop": url}))

    assert worker.perform({"integrationName": "shop", "statement": "SELECT 1 AS n"}).output == {"result": [{"n": 1}]}


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://boss:tops3cret@127.0.0.1:1/tops3cret",
        "sqlite:///nowhere/tops3cret",
        "postgresql://boss:tops3cret@[/",
    ],
)
def test_no_reason_contains_the_address_of_a_database(address):
    outcome = Jdbc(lambda: JdbcSettings({"shop": address})).perform({"connectionId": "shop", "statement": "SELECT 1"})

    assert outcome.status == "FAILED"
    assert not {"tops3cret", "boss", "127.0.0.1"} & set(outcome.reason.replace("/", " ").split())
    assert "s3cret" not in outcome.reason


def test_a_statement_on_a_file_cannot_open_another_file(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as made:
        made.execute(TABLE)
    worker = Jdbc(lambda: JdbcSettings({"shop": f"sqlite://{tmp_path}/a.db"}))
    other = tmp_path / "other.db"
    for kind in ("SELECT", "UPDATE"):
        for statement in (f"ATTACH '{other}' AS o", f"VACUUM INTO '{other}'", "PRAGMA journal_mode = DELETE"):
            outcome = worker.perform({"connectionId": "shop", "statement": statement, "type": kind})
            assert outcome.status == "FAILED", statement

    assert not other.exists()


def test_values_of_every_kind_become_json(run, url):
    if url.startswith("sqlite"):
        statement, expected = "SELECT x'00ff' AS b, 1e999 AS f, 1.25 AS n", {"b": "AP8=", "f": "inf", "n": 1.25}
    else:
        statement = (
            "SELECT '\\x00ff'::bytea AS b, 'NaN'::float AS f, 1.25::numeric AS n, true AS t, interval '90 s' AS i, "
            "12345678901234567.5::numeric AS long, DATE '2026-02-03' AS d, "
            "ARRAY[1, 2] AS list, '{\"a\": 1}'::jsonb AS j"
        )
        expected = {"b": "AP8=", "f": "nan", "n": 1.25, "long": "12345678901234567.5", "d": "2026-02-03"}
        expected |= {"list": [1, 2], "j": {"a": 1}, "t": True, "i": "0:01:30"}

    assert run(statement).output == {"result": [expected]}
