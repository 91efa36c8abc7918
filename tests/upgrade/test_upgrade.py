"""A database of the previous version is upgraded by `migrate`: its runs continue, and nothing is lost."""

import gzip
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests.forked_interpreter import run_forked
from tests.upgrade.installation import create_database

# The mark selects these tests for the suite on PostgreSQL.
pytestmark = pytest.mark.django_db
DUMP = Path(__file__).with_name(f"c01bcf2d.{connection.vendor}.sql.gz")
"""Written by revision c01bcf2d: six runs, a standalone task, a group with permissions, and an alert with a target and a
notification that waits in the outbox. The run `items` has ended two of four items, and the first has no tasks any more.
"""
KEPT_CHECKS = ("conductor_task", "conductor_attempt", "conductor_historyentry")
"""Tables whose foreign keys SQLite continues to check after the upgrade, because dropping a check copies the table."""
Query = Callable[[str], Iterable[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> str:
    """Return the file or the address of a database of the previous version."""
    script = gzip.decompress(DUMP.read_bytes()).decode()
    if connection.vendor == "postgresql":
        url = create_database(os.environ["TEST_DATABASE_URL"])
        with psycopg.connect(url) as upgraded:
            upgraded.execute(script.encode())
        return url
    file = tmp_path_factory.mktemp("upgraded") / "conductor.sqlite3"
    with sqlite3.connect(file) as upgraded:
        upgraded.executescript(script)
    return str(file)


@pytest.fixture(scope="module")
def report(database) -> dict:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "conductor_app.settings.embedded"}
    if connection.vendor == "postgresql":
        environment |= {
            "DJANGO_SETTINGS_MODULE": "conductor_app.settings.testing_cluster",
            "TEST_DATABASE_URL": database,
        }
    else:
        environment |= {"VAR_DIR": str(Path(database).parent)}
    done = run_forked("-m", "tests.upgrade.verify_upgrade", env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_runs_preserve_their_status(report):
    assert report["before"] == {
        "rerun": "RUNNING",
        "loop": "RUNNING",
        "items": "RUNNING",
        "fork": "RUNNING",
        "failed": "FAILED",
        "pending": "RUNNING",
    }


def test_runs_in_a_loop_a_list_of_items_a_fork_and_a_queue_continue_to_their_end(report):
    ended = {name: status for name, status in report["after"].items() if name != "failed"}

    assert ended == dict.fromkeys(("rerun", "loop", "items", "fork", "pending"), "COMPLETED")


def test_the_page_of_an_alert_shows_the_delivery_of_a_notification_that_waited_in_the_outbox(report):
    [(tries, error)] = report["firings"]

    assert tries == 1
    assert error.startswith("No key of this server decrypts the secrets of the target.")


def test_pages_display_runs_and_standalone_tasks(report):
    assert report["pages"] == dict.fromkeys(report["before"], True) | {
        "standalone": 200,
        "group": 200,
    }


def test_operators_preserve_their_permissions(report):
    assert report["rights"] == {
        "view_standalonetask": True,
        "change_standalonetask": True,
        "view_taskgroup": True,
        "view_run": True,
        "change_run": False,
    }


def test_an_upgraded_database_has_the_schema_of_a_new_one(database, report):
    with connection.cursor() as new:
        expected = schema(lambda statement: new.execute(statement) or new.fetchall())
    if connection.vendor == "postgresql":
        with psycopg.connect(database) as upgraded:
            found = schema(lambda statement: upgraded.execute(statement).fetchall())
    else:
        with sqlite3.connect(database) as upgraded:
            found = schema(lambda statement: upgraded.execute(statement).fetchall())

    assert sorted(found - expected) == []
    assert sorted(expected - found) == []


COLUMNS = """
    SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, pg_get_expr(adbin, adrelid)
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text, pg_get_constraintdef(oid), convalidated FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
"""
INDEXES = "SELECT regexp_replace(indexdef, 'INDEX .* ON ', 'INDEX ON ') FROM pg_indexes WHERE schemaname = 'public'"
OPTIONS_OF_TABLES = """
    SELECT relname, reloptions::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
"""


def schema(query: Query) -> set[str]:
    """Return a description of each column, constraint and index, without the names that the database has chosen."""
    if connection.vendor == "postgresql":
        rows = [row for statement in (COLUMNS, CONSTRAINTS, INDEXES, OPTIONS_OF_TABLES) for row in query(statement)]
        # PostgreSQL writes the casts in lists differently after a dump has been loaded.
        return {re.sub(r"::(character varying|text)(\[\])?|[()]", "", str(row)) for row in rows}
    found = set()
    for table, statement in query("SELECT tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"):
        text = re.sub(r'INDEX ".*?" ON', "INDEX ON", statement)
        if table in KEPT_CHECKS:
            text = re.sub(r' REFERENCES "conductor_(run|task)" \("id"\) DEFERRABLE INITIALLY DEFERRED', "", text)
        found |= {f"{table}: {part}" for part in text.split(", ")}
    return found
