"""A copy of the SQLite database that is taken while runs are under way holds every run whole."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection, connections

from conductor_app.core.reports import Report
from conductor_app.engine import runs, sweeps, tasks
from conductor_app.models import Attempt, Run, Task
from tests.builders import definition, policy, step
from tests.engine.views import complaints
from tests.story import BY, View, register

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has its own tools, which copy one snapshot."),
]


def test_a_copy_taken_while_writing_holds_whole_runs_and_the_sweeps_go_on(tmp_path):
    register(definition(step("a", policy=policy(lease_seconds=1)), step("b")))
    copies = [tmp_path / "by_backup.sqlite3", tmp_path / "by_vacuum.sqlite3"]
    is_copied = Event()
    with ThreadPoolExecutor() as pool:
        writer = pool.submit(write_until, is_copied)
        copy_by_backup(copies[0])
        copy_by_vacuum(copies[1])
        is_copied.set()
        assert writer.result(60) > 0

    for copy in copies:
        restore(copy)
        assert Run.objects.exists()
        assert [complaints(run.id) for run in Run.objects.all() if complaints(run.id)] == []
        assert Run.objects.count() == Task.objects.filter(ref="a").count()
        Attempt.objects.filter(status="LEASED").update(due_at=1, lease_ends_at=1)
        left = Attempt.objects.filter(status="LEASED").count()
        assert sweeps.sweep_once() >= left
        assert not Attempt.objects.filter(status="LEASED").exists()
        run = runs.start(runs.StartRequest("order"), BY)
        assert View(run).status == "RUNNING"


def write_until(is_copied):
    """Runs are started, and their tasks are claimed and done, every third one left with its worker."""
    written = 0
    try:
        while written < 3 or not is_copied.is_set():
            runs.start(runs.StartRequest("order"), BY)
            for attempt in tasks.claim("a", worker="w", wait_ms=0):
                written += 1
                if written % 3:
                    tasks.report(attempt.run_id, attempt.id, Report("COMPLETED"), BY)
        return written
    finally:
        connections.close_all()


def copy_by_backup(target):
    """As `sqlite3 conductor.sqlite3 ".backup copy"` does."""
    source, copy = sqlite3.connect(connection.settings_dict["NAME"]), sqlite3.connect(target)
    until_there_is_something(source)
    source.backup(copy)
    source.close()
    copy.close()


def copy_by_vacuum(target):
    source = sqlite3.connect(connection.settings_dict["NAME"])
    source.execute("VACUUM INTO ?", [str(target)])
    source.close()


def until_there_is_something(source):
    while not source.execute("SELECT count(*) FROM conductor_run").fetchone()[0]:
        pass


def restore(copy):
    """The copy becomes the database again."""
    connection.ensure_connection()
    source = sqlite3.connect(copy)
    source.backup(connection.connection)
    source.close()
