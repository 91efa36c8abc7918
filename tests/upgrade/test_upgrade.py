"""A database written by version 0.1 is upgraded in place: its runs continue, and nothing is lost."""

import gzip
import json
import os
import sqlite3
from pathlib import Path

import pytest

from tests.forked_interpreter import run_forked

DUMP = Path(__file__).with_name("version_0_1.sql.gz")
"""Written by commit d41fff6: five runs, a standalone task, a group with permissions."""


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("upgraded")
    with sqlite3.connect(folder / "conductor.sqlite3") as database:
        database.executescript(gzip.decompress(DUMP.read_bytes()).decode())
    environment = {**os.environ, "VAR_DIR": str(folder)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = run_forked("-m", "tests.upgrade.verify_upgrade", env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_runs_preserve_their_status(report):
    assert report["before"] == {
        "rerun": "RUNNING",
        "loop": "RUNNING",
        "fork": "RUNNING",
        "failed": "FAILED",
        "pending": "RUNNING",
    }


def test_runs_in_a_loop_a_fork_and_a_queue_continue_to_their_end(report):
    ended = {name: status for name, status in report["after"].items() if name != "failed"}

    assert ended == dict.fromkeys(("rerun", "loop", "fork", "pending"), "COMPLETED")


def test_pages_display_runs_and_standalone_tasks_at_their_former_addresses(report):
    assert report["pages"] == dict.fromkeys(
        ("rerun", "loop", "fork", "failed", "pending", "history in words"), True
    ) | {"standalone": 200, "group": 200}


def test_operators_preserve_their_permissions(report):
    assert report["rights"] == {
        "view_standalonetask": True,
        "change_standalonetask": True,
        "view_taskgroup": True,
        "view_run": True,
        "change_run": False,
    }
