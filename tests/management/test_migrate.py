"""`manage.py migrate` on PostgreSQL while other sessions hold locks: other statements never wait long behind it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

ROOT = Path(__file__).parents[2]
INSERT = "INSERT INTO contended_app_entry DEFAULT VALUES"
COLUMNS = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'contended_app_entry'"

# The fixture `db` selects these tests for the suite on PostgreSQL.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "postgresql" not in settings.DATABASES["default"]["ENGINE"], reason="SQLite has no locks of tables."
    ),
    pytest.mark.django_db,
]


@pytest.fixture(scope="module")
def url(django_db_setup) -> Iterator[str]:
    """Yield the address of a new database in the server of the tests."""
    server = os.environ["TEST_DATABASE_URL"]
    name = f"contended_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute(f"CREATE DATABASE {name}")
        parts = conninfo_to_dict(server)
        yield (
            f"postgresql://{parts['user']}:{parts.get('password', '')}@/{name}"
            f"?host={parts['host']}&port={parts.get('port', 5432)}"
        )
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


def migrate(url: str, target: str, *options: str) -> subprocess.Popen[str]:
    """Start `manage.py migrate contended_app`."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.management.contended_settings",
        "CONTENDED_DATABASE_URL": url,
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "manage.py", "migrate", "contended_app", target, *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)


def test_a_migration_that_gets_no_lock_lets_others_continue_and_is_repeated(url):
    with migrate(url, "0001") as creation:
        creation.communicate()
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as other:
        holder.execute("SELECT * FROM contended_app_entry")
        with migrate(url, "0002", "--lock-wait=0.05", "--lock-pause=0") as migration:
            lines = iter(migration.stdout.readline, "")
            message = next(line for line in lines if "rolled back" in line)
            other.execute("SET statement_timeout = '1s'")
            for _ in range(20):
                other.execute(INSERT)
            holder.rollback()
            rest = migration.stdout.read()

        assert migration.wait(60) == 0, rest
        assert "because a lock was not available within 0.05 s" in message
        assert f"pid {holder.info.backend_pid} (" in message
        assert "Attempt 2 of 60 starts in 0 s." in message
        assert other.execute(COLUMNS).fetchone() == (2,)


def test_the_last_attempt_reports_the_error_and_changes_nothing(url):
    with psycopg.connect(url) as holder:
        columns = holder.execute(COLUMNS).fetchone()
        holder.execute("SELECT * FROM contended_app_entry")
        with migrate(url, "0001", "--lock-wait=0.05", "--lock-pause=0", "--lock-attempts=2") as migration:
            output, _ = migration.communicate(timeout=60)

        assert migration.returncode == 1
        assert output.count("Attempt ") == 1
        assert "canceling statement due to lock timeout" in output
        assert holder.execute(COLUMNS).fetchone() == columns


def test_an_index_waits_for_open_transactions_without_a_limit_and_blocks_no_writer(url):
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as other:
        holder.execute(INSERT)
        # The statement timeout of the settings is 1 s, and the index takes longer.
        with migrate(url, "0003", "--lock-wait=0.05", "--lock-attempts=1") as migration:
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND wait_event_type = 'Lock'"
            )
            aged = f"{waiting} AND now() - query_start > interval '1100 ms'"
            while other.execute(aged).fetchone() == (0,):
                assert migration.poll() is None, migration.stdout.read()
                other.execute(INSERT)
            holder.rollback()

            assert migration.wait(60) == 0, migration.stdout.read()
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'entry_by_text'::regclass"
        assert other.execute(valid).fetchone() == (True,)
