"""One command starts a server, keeps it alive and stops it."""

import http.client
import json
import re
import signal
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest
import requests
import taskcluster
from django.conf import settings
from taskcluster.exceptions import TaskclusterAuthFailure
from taskcluster.utils import slugId

from tests.clients.test_taskcluster_queue import LINUX, WORKER, definition, moment
from tests.recording_web_server import running_web_server

from .server import Server, wait_until

WAIT = {"name": "w", "taskReferenceName": "w", "type": "WAIT", "inputParameters": {"duration": "1 s"}}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "postgresql" in settings.DATABASES["default"]["ENGINE"],
        reason="serve brings its own SQLite; one run says it all",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the data folder of this module's servers: only the first of them initializes it."""
    return tmp_path_factory.mktemp("machine")


@pytest.fixture(scope="module")
def server(folder):
    """Return a running server, the first in the folder."""
    first = Server(folder).wait_until_up()
    yield first
    first.stop()


@pytest.fixture(scope="module")
def second(folder, server):
    """Return a second server in the same folder, which the last test that uses it kills."""
    one = Server(folder).wait_until_up()
    yield one
    if one.process.poll() is None:
        one.stop()


@pytest.fixture
def start(folder, server):
    """Return a function that starts one more server in the folder; stop its processes afterwards."""
    started = []

    def one_more(**variables):
        started.append(Server(folder, **variables))
        return started[-1]

    yield one_more
    for one in started:
        if one.process.poll() is None:
            one.stop()


def test_it_prints_its_addresses_and_the_login(server):
    here = f"http://127.0.0.1:{server.port}"

    assert all(f"{here}{page}" in server.words() for page in ("/admin/", "/api/", "/api/docs"))
    assert "log in as admin, password " in server.words()
    assert server.words().startswith("Starting the server. The first start creates the database")


def test_it_is_healthy_and_serves_pages_with_styles(server):
    status, body = server.get("/health")

    assert (status, json.loads(body)["healthy"]) == (200, True)
    assert server.get("/admin/login/")[0] == 200
    assert server.get("/static/admin/css/base.css")[0] == 200


def test_a_second_start_prints_no_password(second):
    assert "password" not in second.words()


def test_no_process_survives_the_kill_of_the_server(second):
    second.process.kill()

    wait_until(second.is_gone)


@pytest.mark.parametrize("name", ["web", "worker", "beat"])
def test_a_killed_process_is_restarted(server, name):
    killed = server.child(name)
    killed_name = killed.name()

    killed.kill()

    wait_until(lambda: any(child.name() == killed_name for child in server.children() if child.pid != killed.pid))
    assert server.get("/health")[0] == 200
    assert "Restarting in 0.5 s" in server.words()


def test_a_port_in_use_is_reported_in_one_line(server, start):
    second = start(PORT=str(server.port))

    assert second.process.wait(60) == 1
    assert second.words() == (
        f"CommandError: Port {server.port} on 127.0.0.1 is in use."
        f" Stop the process that uses it, or choose another: PORT={server.port + 1}\n"
    )


def test_open_access_is_refused_beyond_loopback(start):
    server = start(HOST="0.0.0.0", ALLOWED_HOSTS="localhost", CONDUCTOR_API_ACCESS="open")

    assert server.process.wait(60) == 1
    assert "CONDUCTOR_API_ACCESS is open, but HOST=0.0.0.0 can be reached from other machines." in server.words()


def test_metrics_of_its_processes_are_summed(server):
    api(server, "POST", "/api/metadata/workflow", {"name": "wait", "tasks": [WAIT]})
    api(server, "POST", "/api/workflow/wait", {})

    def ended_and_counted():
        # Started by a request in the web process, ended by a sweep in the Celery worker.
        found = server.get("/metrics")[1].decode()
        return 'conductor_runs_started_total{definition="wait"} 1.0' in found and (
            'conductor_runs_ended_total{definition="wait",status="COMPLETED"} 1.0' in found
        )

    wait_until(ended_and_counted)


def test_frozen_background_processes_stop_no_timer(server):
    api(server, "POST", "/api/metadata/workflow", {"name": "frozen", "tasks": [WAIT]})
    frozen = [server.child("beat"), server.child("worker")]
    for process in frozen:
        process.suspend()
    try:
        run = api(server, "POST", "/api/workflow/frozen", {}).decode()
        wait_until(lambda: json.loads(api(server, "GET", f"/api/workflow/{run}", None))["status"] == "COMPLETED")
    finally:
        for process in frozen:
            process.resume()


def test_ctrl_c_answers_a_report_that_is_arriving_and_waits_for_no_poll(start):
    server = start().wait_until_up()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    body = b'{"name": "late", "retryCount": 1, "timeoutSeconds": 0}'
    head = f"POST /api/metadata/taskdefs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body) + 2}\r\n"
    connection.sendall(f"{head}Content-Type: application/json\r\n\r\n[".encode() + body[:10])
    beat = server.child("beat")
    with ThreadPoolExecutor() as workers:
        polls = [workers.submit(_poll, server) for _ in range(5)]

        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: not beat.is_running() or beat.status() == "zombie")
        connection.sendall(body[10:] + b"]")

        assert connection.recv(64).startswith(b"HTTP/1.1 200")
        server.process.wait(10)
        # Each request asked to wait for 20 s, and none did.
        wait(polls, timeout=5)
        assert all(poll.done() for poll in polls)
    assert server.is_gone()
    assert server.words().endswith("Stopped.\n")


def test_a_stopping_built_in_worker_releases_its_tasks(new_data_folder):
    # No other server shares the folder: it would claim the returned work at once.
    folder = new_data_folder("worker")
    server = Server(folder).wait_until_up()
    with running_web_server() as slow:
        asked, released = Event(), Event()
        slow.answer_to = lambda path: (asked.set(), released.wait(20), (200, {}, b"{}"))[-1]
        asks = {"uri": slow.url, "method": "GET", "readTimeOut": 30_000}
        call = {**WAIT, "name": "call", "type": "HTTP", "inputParameters": asks}
        api(server, "POST", "/api/metadata/workflow", {"name": "call", "tasks": [call]})
        run = api(server, "POST", "/api/workflow/call", {})
        assert asked.wait(60)

        server.stop()
        released.set()

    rows = sqlite3.connect(folder / "var" / "conductor.sqlite3")
    found = rows.execute("SELECT status, worker FROM conductor_attempt WHERE run_id = ?", [run.decode()]).fetchall()
    rows.close()
    assert [status for status, _ in found] == ["PENDING"]


def test_signatures_of_taskcluster_clients_are_verified_on_the_raw_request(server):
    url = f"http://127.0.0.1:{server.port}"
    everything = {"expires": moment(hours=1), "description": "the first one", "scopes": ["*"]}
    token = taskcluster.Auth({"rootUrl": url}).createClient("static/root", everything)["accessToken"]

    def queue(client_id, token, certificate=None):
        known = {"clientId": client_id, "accessToken": token, "certificate": certificate}
        return taskcluster.Queue({"rootUrl": url, "maxRetries": 0, "credentials": known})

    id, root = slugId(), queue("static/root", token)
    root.createTask(id, definition())
    [claim] = root.claimWork(LINUX, WORKER)["tasks"]
    worker = queue(*claim["credentials"].values())
    asked = {"storageType": "s3", "contentType": "text/plain", "expires": moment(minutes=30)}
    sent = requests.put(
        worker.createArtifact(id, 0, "public/a b?", asked)["putUrl"], (b"x" * 65_536 for _ in range(64))
    )

    assert sent.status_code == 200
    assert len(requests.get(root.buildSignedUrl("getArtifact", id, 0, "public/a b?")).content) == 64 * 65_536
    assert worker.reportCompleted(id, 0)["status"]["state"] == "completed"
    with pytest.raises(TaskclusterAuthFailure):
        queue("static/root", "y" * 44).status(id)


def api(server, method, path, body):
    """Return the API's reply; assert that it succeeded."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    return content


def _poll(server):
    try:
        return server.get("/api/tasks/poll/batch/nobody?timeout=20000&count=1")
    except OSError:
        return None


def test_below_a_path_prefix_every_address_has_the_prefix(start):
    server = start(SCRIPT_NAME="/conductor").wait_until_up()

    _, page = server.get("/conductor/admin/login/")
    used = set(re.findall(rb'(?:href|src|action)="(/[^"]*)"', page))

    assert len(used) > 5
    assert [each for each in used if not each.startswith(b"/conductor/")] == []
    inside = [server.get(f"/conductor{path}")[0] for path in ("/", "/api/metadata/workflow", "/health")]
    outside = [server.get(path)[0] for path in ("/health", "/admin/", "/api/tasks")]
    assert (inside, outside) == ([302, 200, 200], [200, 404, 404])
