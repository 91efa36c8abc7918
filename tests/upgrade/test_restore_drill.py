"""A restore drill: a backup that was taken during work continues on another host, with other keys."""

import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import taskcluster
from django.conf import settings

from conductor_app.core.snapshot import NEVER
from tests.clients.test_taskcluster_queue import LINUX, WORKER, definition, moment
from tests.forked_interpreter import run_forked
from tests.management.server import Server, wait_until

pytestmark = pytest.mark.skipif(
    "postgresql" in settings.DATABASES["default"]["ENGINE"],
    reason="The servers use their own SQLite database. test_backup_under_load.py restores PostgreSQL.",
)

OLD_KEYS = {"SECRET_KEY": "first-signing-key-" * 4, "SECRETS_KEYS": "first-sealing-key-" * 2}
NEW_KEYS = {"SECRET_KEY": "second-signing-key-" * 4, "SECRETS_KEYS": "second-sealing-key-" * 2}
BOTH_KEYS = {
    "SECRET_KEY": NEW_KEYS["SECRET_KEY"],
    "SECRET_KEY_FALLBACKS": OLD_KEYS["SECRET_KEY"],
    "SECRETS_KEYS": f"{NEW_KEYS['SECRETS_KEYS']},{OLD_KEYS['SECRETS_KEYS']}",
}
ROOT_CLIENT, ROOT_TOKEN, PASSWORD = "static/root", "r" * 44, "correct horse"
NOTE = "large enough for a file" * 100
HOUR_SECONDS, DOWNTIME_MS = 3600, 2 * 3_600_000
TIMES = ("lease_ends_at", "due_at", "ends_at")
"""The columns of leases and timers of attempts."""

CHARGE = {
    "name": "charge",
    "retryCount": 5,
    "retryDelaySeconds": 0,
    "timeoutSeconds": 0,
    "responseTimeoutSeconds": HOUR_SECONDS,
}
ORDER = {
    "name": "order",
    "version": 1,
    "maskedFields": ["card"],
    "tasks": [
        {
            "name": "charge",
            "taskReferenceName": "charge",
            "type": "SIMPLE",
            "inputParameters": {
                "password": "${workflow.secrets.DB}",
                "card": "${workflow.input.card}",
                "note": "${workflow.input.note}",
            },
        }
    ],
}
PAUSE = {
    "name": "pause",
    "version": 1,
    "tasks": [
        {"name": "w", "taskReferenceName": "w", "type": "WAIT", "inputParameters": {"duration": f"{HOUR_SECONDS} s"}}
    ],
}
INPUT = {"card": "4711", "note": NOTE}
WEBHOOK = {"name": "shop", "verifier": "HEADER_BASED", "headers": {"X-Key": "webhook-secret"}}


@dataclass
class Site:
    """A server under one of its host names, with the credentials of its clients."""

    folder: Path
    host: str
    keys: dict[str, str]
    access_key: str = ""
    access_secret: str = ""

    def environment(self) -> dict[str, str]:
        return {
            **self.keys,
            "ALLOWED_HOSTS": self.host,
            "CONDUCTOR_API_ACCESS": "token",
            "TASKCLUSTER_ROOT_CLIENT_ID": ROOT_CLIENT,
            "TASKCLUSTER_ROOT_ACCESS_TOKEN": ROOT_TOKEN,
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            # Inputs of more than 1 KB are stored in files.
            "WORKFLOW_PAYLOAD_SOFT_KB": "1",
            "TASK_PAYLOAD_SOFT_KB": "1",
        }

    def start(self) -> "Site":
        self.server = Server(self.folder, **self.environment()).wait_until_up()
        self.url = f"http://{self.host}:{self.server.port}"
        return self

    def manage(self, *arguments: str) -> str:
        variables = os.environ | self.environment() | {"VAR_DIR": str(self.folder / "var")}
        variables["DJANGO_SETTINGS_MODULE"] = "conductor_app.settings.embedded"
        done = run_forked("manage.py", *arguments, env=variables)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def request_token(self) -> str:
        return self.send("POST", "/token", {"keyId": self.access_key, "keySecret": self.access_secret})["token"]

    def send(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        headers = {"X-Authorization": token}
        reply = requests.request(method, f"{self.url}/api{path}", json=body, headers=headers, timeout=10)
        assert reply.status_code == 200, reply.text
        return reply.json() if "json" in reply.headers.get("Content-Type", "") else reply.text

    def queue(self, credentials: dict[str, str]) -> taskcluster.Queue:
        return taskcluster.Queue({"rootUrl": self.url, "maxRetries": 0, "credentials": credentials})

    def charge_all(self, token: str) -> list[dict[str, Any]]:
        """Complete the tasks that a worker can claim. Returns them."""
        tasks = self.send("GET", "/tasks/poll/batch/charge?workerid=w&count=20&timeout=50", token=token)
        for task in tasks:
            result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}
            self.send("POST", "/tasks", result, token)
        return tasks

    def status(self, run: str, token: str) -> str:
        return self.send("GET", f"/workflow/{run}", token=token)["status"]


@dataclass
class Leftovers:
    """Work that was in flight when the backup was taken, and credentials of clients."""

    token: str
    leased_run: str
    paused_run: str
    standalone: str
    claim: dict[str, str]
    client: dict[str, str]
    webhook: str


@pytest.fixture(scope="module")
def backup(new_data_folder, tmp_path_factory) -> Iterator[tuple[Path, Site, Leftovers]]:
    """Yield a backup that was taken during work on a machine that was then lost, the machine, and the work."""
    folder, archive = new_data_folder("lost"), tmp_path_factory.mktemp("backup") / "conductor.backup"
    site = Site(folder, "localhost", OLD_KEYS).start()
    _, site.access_key, _, site.access_secret = site.manage("create_access_key", "billing").split()
    leftovers = begin_work(site)
    is_copied = threading.Event()
    client = threading.Thread(target=work_until, args=(site, leftovers.token, is_copied))
    client.start()
    site.manage("backup", str(archive))
    is_copied.set()
    client.join()
    site.server.process.kill()
    yield archive, site, leftovers
    wait_until(site.server.is_gone)


def begin_work(site: Site) -> Leftovers:
    token = site.request_token()
    requests.put(
        f"{site.url}/api/secrets/DB", data="db-password", headers={"X-Authorization": token}, timeout=10
    ).raise_for_status()
    site.send("POST", "/metadata/taskdefs", [CHARGE], token)
    site.send("PUT", "/metadata/workflow", [ORDER, PAUSE], token)
    webhook = site.send("POST", "/metadata/webhook", WEBHOOK, token)["id"]
    leased = site.send("POST", "/workflow/order", INPUT, token)
    [_] = site.send("GET", "/tasks/poll/batch/charge?workerid=lost&count=1&timeout=2000", token=token)
    paused = site.send("POST", "/workflow/pause", {}, token)
    root = {"clientId": ROOT_CLIENT, "accessToken": ROOT_TOKEN}
    auth = taskcluster.Auth({"rootUrl": site.url, "maxRetries": 0, "credentials": root})
    made = auth.createClient("builds", {"expires": moment(hours=1), "description": "", "scopes": ["*"]})
    standalone = taskcluster.slugId()
    site.queue(root).createTask(standalone, definition())
    [claim] = site.queue(root).claimWork(LINUX, WORKER)["tasks"]
    client = {"clientId": "builds", "accessToken": made["accessToken"]}
    return Leftovers(token, leased, paused, standalone, dict(claim["credentials"]), client, webhook)


def work_until(site: Site, token: str, is_copied: threading.Event) -> None:
    while not is_copied.is_set():
        site.send("POST", "/workflow/order", INPUT, token)
        site.charge_all(token)


@pytest.fixture(scope="module")
def restored(backup, tmp_path_factory) -> Iterator[Site]:
    """Restore the backup in another folder, under another host name and port, with new keys before the old ones."""
    archive, lost, _ = backup
    folder = tmp_path_factory.mktemp("restored")
    site = Site(folder, "127.0.0.1", BOTH_KEYS, lost.access_key, lost.access_secret)
    site.manage("restore", str(archive))
    let_time_pass(folder / "var" / "conductor.sqlite3")
    yield site.start()
    site.server.stop()


def let_time_pass(database: Path) -> None:
    """Move the leases and timers of runs into the past, as if the downtime had been that long."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for column in TIMES:
            changed = connection.execute(
                f"UPDATE conductor_attempt SET {column} = {column} - {DOWNTIME_MS} WHERE {column} < {NEVER} "
                "AND ended_at IS NULL AND run_id IN (SELECT id FROM conductor_run)"
            )
            # The lease and the timer are in the archive: neither ended while it was written, however long that took.
            assert changed.rowcount >= 1, column


@pytest.fixture(scope="module")
def rotated(restored, tmp_path_factory) -> Iterator[Site]:
    """Encrypt all secrets with the new keys, and start a server without the old keys."""
    restored.manage("reseal_secrets")
    site = Site(restored.folder, "127.0.0.1", NEW_KEYS, restored.access_key, restored.access_secret).start()
    yield site
    site.server.stop()


@pytest.fixture(params=["restored", "rotated"])
def site(request) -> Site:
    """Return the restored server with the old keys in second place, then the one without them."""
    return request.getfixturevalue(request.param)


def test_a_timer_that_was_due_during_the_downtime_fires(restored, backup):
    _, _, left = backup

    wait_until(lambda: restored.status(left.paused_run, left.token) == "COMPLETED")


def test_a_leased_task_returns_to_its_queue_and_all_runs_complete(restored, backup):
    _, _, left = backup
    charged: list[dict[str, Any]] = []

    wait_until(lambda: charged.extend(restored.charge_all(left.token)) or is_idle(restored, left.token))

    assert left.leased_run in {task["workflowInstanceId"] for task in charged}
    assert {(task["inputData"]["card"], task["inputData"]["note"]) for task in charged} == {("4711", NOTE)}
    assert {task["inputData"]["password"] for task in charged} == {"db-password"}
    assert restored.status(left.leased_run, left.token) == "COMPLETED"


def is_idle(site: Site, token: str) -> bool:
    return site.send("GET", "/workflow/running/order", token=token) == []


def test_the_worker_of_a_claimed_task_reports_with_its_credentials(restored, backup):
    _, _, left = backup

    assert restored.queue(left.claim).reportCompleted(left.standalone, 0)["status"]["state"] == "completed"


def test_the_former_host_name_is_refused(restored):
    reply = requests.get(f"http://localhost:{restored.server.port}/api/metadata/workflow", timeout=10)

    assert reply.status_code == 400


def test_access_keys_of_applications_are_valid(site):
    assert site.send("GET", "/metadata/taskdefs", token=site.request_token())[0]["name"] == "charge"


def test_secrets_are_readable(site):
    assert site.send("GET", "/secrets/DB", token=site.request_token()) == "db-password"


def test_credentials_of_taskcluster_clients_are_valid(site, backup):
    _, _, left = backup
    root = {"clientId": ROOT_CLIENT, "accessToken": ROOT_TOKEN}

    for credentials in (root, left.client):
        assert site.queue(credentials).task(left.standalone)["taskQueueId"] == LINUX


def test_webhooks_are_verified(site, backup):
    _, _, left = backup

    reply = requests.post(
        f"{site.url}/webhook/{left.webhook}", json={}, headers={"X-Key": "webhook-secret"}, timeout=10
    )

    assert reply.status_code == 200


def test_users_sign_in(site):
    session = requests.Session()
    form = {"username": "admin", "password": PASSWORD}
    page = session.get(f"{site.url}/admin/login/", timeout=10)
    form["csrfmiddlewaretoken"] = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)[1]

    reply = session.post(f"{site.url}/admin/login/", form, allow_redirects=False, timeout=10)

    assert (reply.status_code, reply.headers["Location"]) == (302, "/admin/")
    assert session.get(f"{site.url}/admin/", timeout=10).status_code == 200


def test_a_new_run_reads_secrets_and_masked_values(site):
    token = site.request_token()
    run = site.send("POST", "/workflow/order", INPUT, token)
    charged: list[dict[str, Any]] = []

    wait_until(lambda: charged.extend(site.charge_all(token)) or site.status(run, token) == "COMPLETED")

    inputs = charged[-1]["inputData"]
    assert (inputs["password"], inputs["card"], inputs["note"]) == ("db-password", "4711", NOTE)


def test_a_token_of_the_former_signing_key_is_refused_without_it(rotated, backup):
    _, _, left = backup
    headers = {"X-Authorization": left.token}

    assert requests.get(f"{rotated.url}/api/metadata/taskdefs", headers=headers, timeout=10).status_code == 401
