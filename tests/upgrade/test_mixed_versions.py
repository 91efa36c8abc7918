"""An upgrade while clients work: processes of the previous version and of this one share a database."""

import os
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings

from tests.forked_interpreter import run_forked
from tests.management.server import Server, wait_until
from tests.upgrade.previous_release import export_previous_version

pytestmark = pytest.mark.skipif(
    "postgresql" in settings.DATABASES["default"]["ENGINE"], reason="The servers use their own SQLite database."
)

WAIT = {"name": "wait", "taskReferenceName": "wait", "type": "WAIT", "inputParameters": {"duration": "1 s"}}
CHILD = {
    "name": "child",
    "taskReferenceName": "child",
    "type": "SUB_WORKFLOW",
    "subWorkflowParam": {"name": "child", "version": 1},
}
TYPES = ("first", "inner", "last")
OPEN_RUNS = 4


def simple(name: str) -> dict[str, Any]:
    return {"name": name, "taskReferenceName": name, "type": "SIMPLE"}


DEFINITIONS = [
    {"name": "child", "version": 1, "tasks": [simple("inner")]},
    {"name": "order", "version": 1, "tasks": [simple("first"), CHILD, WAIT, simple("last")]},
]


@dataclass
class Traffic:
    """A client that starts runs and completes their tasks, each request at the next of the servers in turn."""

    servers: list[Server]
    refusals: list[str] = field(default_factory=list)
    started: dict[str, Server] = field(default_factory=dict)
    ended: dict[str, Server] = field(default_factory=dict)
    is_starting: bool = True
    is_working: bool = True
    turns: Iterator[int] = field(default_factory=count)

    def send(self, method: str, path: str, server: Server | None = None, **options: Any) -> Any:
        server = server or self.next_server()
        reply = requests.request(method, f"http://127.0.0.1:{server.port}/api{path}", timeout=20, **options)
        if reply.status_code != 200:
            self.refusals.append(f"{reply.status_code} {method} {path} {reply.text[:200]}")
            raise AssertionError(self.refusals[-1])
        return reply.json() if "json" in reply.headers.get("Content-Type", "") else reply.text

    def next_server(self) -> Server:
        return self.servers[next(self.turns) % len(self.servers)]

    def run(self) -> None:
        with suppress(AssertionError):
            while self.is_working:
                self.work()

    def work(self) -> None:
        if self.is_starting and len(self.started) - len(self.ended) < OPEN_RUNS:
            self.start_run()
        for type in TYPES:
            for task in self.claim(type):
                self.complete(task)

    def start_run(self) -> str:
        server = self.next_server()
        run = self.send("POST", "/workflow/order", server, json={})
        self.started[run] = server
        return run

    def claim(self, type: str) -> list[dict[str, Any]]:
        return self.send("GET", f"/tasks/poll/batch/{type}?workerid=w&count=5&timeout=20")

    def complete(self, task: dict[str, Any]) -> None:
        server = self.next_server()
        result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}
        self.send("POST", "/tasks", server, json=result)
        if task["taskType"] == "last":
            self.ended[task["workflowInstanceId"]] = server

    def ways(self) -> set[tuple[Server, Server]]:
        """Return the servers at which runs were started and ended."""
        return {(self.started[run], server) for run, server in list(self.ended.items())}

    def wait_for_ends(self, number: int) -> None:
        """Wait until this number of further runs has ended."""
        goal = len(self.ended) + number
        self.wait_until(lambda: len(self.ended) >= goal)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        wait_until(lambda: self.refusals or condition())
        assert self.refusals == []


@dataclass
class Upgrade:
    """The results of an upgrade."""

    old: Server
    new: Server
    traffic: Traffic
    migration: subprocess.CompletedProcess[str]
    claimed_before: str
    run_statuses: Counter


@pytest.fixture(scope="module")
def upgrade(tmp_path_factory) -> Iterator[Upgrade]:
    """Upgrade from the previous version to this one while a client works."""
    code, data = tmp_path_factory.mktemp("previous"), tmp_path_factory.mktemp("data")
    old = Server(data, export_previous_version(code)).wait_until_up()
    servers, traffic = [old], Traffic([old])
    client = threading.Thread(target=traffic.run)
    try:
        traffic.send("PUT", "/metadata/workflow", json=DEFINITIONS)
        claimed_before = traffic.start_run()
        [task] = traffic.claim("first")
        client.start()
        traffic.wait_for_ends(2)
        migration = migrate(data)
        traffic.wait_for_ends(2)
        new = Server(data)
        servers.append(new)
        new.wait_until_up()
        traffic.servers = [old, new]
        traffic.wait_until(lambda: {(old, new), (new, old)} <= traffic.ways())
        traffic.servers = [new]
        traffic.complete(task)
        # Afterwards, the client does not use the old server any more.
        traffic.wait_for_ends(1)
        old.stop()
        traffic.is_starting = False
        traffic.wait_until(lambda: not set(traffic.started) - set(traffic.ended))
        statuses = Counter(traffic.send("GET", f"/workflow/{run}")["status"] for run in traffic.started)
        yield Upgrade(old, new, traffic, migration, claimed_before, statuses)
    finally:
        traffic.is_starting = traffic.is_working = False
        if client.ident:
            client.join()
        for server in servers:
            if server.process.poll() is None:
                server.stop()


def migrate(data: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "VAR_DIR": str(data / "var"),
        "DJANGO_SETTINGS_MODULE": "conductor_app.settings.embedded",
    }
    return run_forked("manage.py", "migrate", env=environment)


def test_the_migration_changes_the_schema_while_the_previous_version_works(upgrade):
    assert upgrade.migration.returncode == 0, upgrade.migration.stderr
    assert "Applying conductor." in upgrade.migration.stdout


def test_no_request_fails_before_during_and_after_the_upgrade(upgrade):
    assert upgrade.traffic.refusals == []


def test_every_run_completes(upgrade):
    assert upgrade.run_statuses == {"COMPLETED": len(upgrade.traffic.started)}


def test_runs_that_one_version_starts_end_in_the_other(upgrade):
    assert {(upgrade.old, upgrade.new), (upgrade.new, upgrade.old)} <= upgrade.traffic.ways()


def test_a_task_that_was_claimed_before_the_migration_is_reported_afterwards(upgrade):
    assert upgrade.traffic.ended[upgrade.claimed_before] is upgrade.new


def test_no_process_logs_an_error(upgrade):
    assert "Traceback" not in upgrade.old.words()
    assert "Traceback" not in upgrade.new.words()
