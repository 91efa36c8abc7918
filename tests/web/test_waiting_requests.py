"""Requests that wait occupy no thread of the web process. The worker of these tests has one thread."""

import json
import os
import selectors
import socket
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from threading import Barrier, Thread
from typing import Any, BinaryIO

import pytest
from django.db import connections, transaction
from gunicorn.config import Config
from gunicorn.glogging import Logger

from conductor_app import notifications
from conductor_app.runs.models import Run
from conductor_app.web.gunicorn_worker import KeepAliveThreadWorker
from conductor_app.wsgi import application
from tests.builders import definition, step
from tests.clients.wait_until import eventually
from tests.scenario import register_definitions

BATCH_POLL = "/api/tasks/poll/batch/cut?workerid=w&timeout=5000"
CLAIM_WORK = "/api/queue/v1/claim-work/proj%2Flinux"
MINUTE = 60


class RunningWorker:
    """A worker process of Gunicorn as a thread, with its main loop."""

    def __init__(self, threads: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        config = Config()
        config.set("threads", threads)
        config.set("keepalive", MINUTE)
        self.worker = KeepAliveThreadWorker(1, os.getppid(), [self.listener], None, 30, config, Logger(config))
        self.worker.wsgi = application
        self.worker.poller = selectors.DefaultSelector()
        self.worker.method_queue.init()
        self.worker.tpool = self.worker.get_thread_pool()
        self.threads, self.clients = threads, list[HTTPConnection]()
        self._main = Thread(target=self.worker.run, name="main thread of a worker")
        self._main.start()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> HTTPConnection:
        """Send a request on a new connection, and return that without waiting for the response."""
        client = HTTPConnection("127.0.0.1", self.listener.getsockname()[1], timeout=MINUTE)
        self.clients.append(client)
        send_on(client, method, path, body, **headers)
        return client

    def wait_with(self, method: str, path: str, body: Any = None) -> HTTPConnection:
        """Send a request, and return its connection when it waits."""
        before = notifications.count_waiting()
        client = self.send(method, path, body)
        eventually(lambda: notifications.count_waiting() > before)
        return client

    def stop(self) -> None:
        """Stop the worker and close the database connections of its threads."""
        for client in self.clients:
            client.close()
        eventually(lambda: self.worker.nr_conns == 0)
        if self.worker.alive:
            barrier = Barrier(self.threads)
            for closed in [self.worker.tpool.submit(self._close_connections, barrier) for _ in range(self.threads)]:
                closed.result()
            self.worker.handle_exit(None, None)
        self._main.join()

    @staticmethod
    def _close_connections(barrier: Barrier) -> None:
        barrier.wait()
        connections.close_all()


def send_on(client: HTTPConnection, method: str, path: str, body: Any = None, **headers: str) -> None:
    """Send a request on an open connection."""
    text = None if body is None else json.dumps(body)
    client.request(method, path, text, {"Content-Type": "application/json"} | headers)


def read(client: HTTPConnection) -> tuple[HTTPResponse, Any]:
    """Return the response and its JSON body, or None."""
    response = client.getresponse()
    body = response.read()
    return response, json.loads(body) if body else None


def read_body(replies: BinaryIO) -> bytes:
    """Return the body of the next response."""
    length = 0
    while line := replies.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return replies.read(length)


@pytest.fixture
def server(transactional_db) -> Iterator[RunningWorker]:
    """Yield a worker with one thread."""
    running = RunningWorker(threads=1)
    yield running
    running.stop()


@pytest.fixture
def start(server: RunningWorker) -> Callable[[], str]:
    """Return a function that starts a run with one task through the server."""
    register_definitions(definition(step("cut")))

    def start_run() -> str:
        response = server.send("POST", "/api/workflow/order", {}).getresponse()
        return response.read().decode()

    return start_run


def report(server: RunningWorker, task: dict[str, Any], path: str = "/api/tasks") -> HTTPConnection:
    ids = {name: task[name] for name in ("workflowInstanceId", "taskId")}
    return server.send("POST", path, {**ids, "status": "COMPLETED"})


def test_a_poll_receives_a_task_that_starts_meanwhile_in_the_only_thread(server, start):
    waiting = server.wait_with("GET", BATCH_POLL)

    run_id = start()

    _, [task] = read(waiting)
    assert task["workflowInstanceId"] == run_id


def test_one_task_ends_the_poll_that_has_waited_longest(server, start):
    first, second = server.wait_with("GET", BATCH_POLL), server.wait_with("GET", BATCH_POLL)

    ids = [start(), start()]

    assert [read(client)[1][0]["workflowInstanceId"] for client in (first, second)] == ids


def test_one_task_among_many_waiting_polls_continues_one_of_them(server, start, monkeypatch):
    polls = [server.wait_with("GET", BATCH_POLL) for _ in range(20)]
    continued = []
    resume = server.worker.resume
    monkeypatch.setattr(
        server.worker, "resume", lambda connection, conn: continued.append(connection) or resume(connection, conn)
    )

    start()
    read(polls[0])

    assert len(continued) == 1


def test_a_wait_without_a_task_ends_at_its_time(server):
    waiting = server.send("GET", "/api/tasks/poll/batch/cut?timeout=300")

    response, tasks = read(waiting)

    assert (response.status, tasks) == (200, [])


def test_a_poll_for_one_task_without_a_task_has_no_content(server):
    response, _ = read(server.send("GET", "/api/tasks/poll/cut"))

    assert (response.status, response.headers["Content-Type"]) == (204, None)


def test_a_reply_after_a_wait_has_the_headers_of_other_replies(server, start):
    start()
    at_once, _ = read(server.send("GET", BATCH_POLL))
    waiting = server.wait_with("GET", BATCH_POLL)
    start()
    waited, _ = read(waiting)

    assert waited.headers.keys() == at_once.headers.keys()
    assert waited.headers["Content-Type"] == "application/json"


def test_a_connection_serves_further_requests_after_a_wait(server, start):
    client = server.wait_with("GET", BATCH_POLL)
    start()
    read(client)

    send_on(client, "GET", "/api/tasks/poll/batch/cut?timeout=100")

    assert read(client)[1] == []


def test_a_request_that_is_sent_during_a_wait_is_answered_after_it(server, start):
    client = server.wait_with("GET", BATCH_POLL)
    client.sock.sendall(b"GET /api/tasks/poll/batch/cut?timeout=0 HTTP/1.1\r\nHost: a\r\n\r\n")

    start()

    # One buffer for both: they may arrive together.
    with client.sock.makefile("rb") as replies:
        assert len(json.loads(read_body(replies))) == 1
        assert read_body(replies) == b"[]"


def test_nothing_is_claimed_for_a_client_that_disconnects_during_its_wait(server, start):
    server.wait_with("GET", BATCH_POLL).close()
    eventually(lambda: not notifications.count_waiting())
    waiting = server.wait_with("GET", BATCH_POLL)

    start()

    _, [task] = read(waiting)
    assert task["pollCount"] == 1


def test_the_connection_of_a_client_that_disconnects_during_its_wait_is_closed(server):
    server.wait_with("GET", BATCH_POLL).close()

    eventually(lambda: server.worker.nr_conns == 0)

    assert notifications.count_waiting() == 0


def test_waiting_polls_are_answered_when_the_server_stops(server):
    polls = [server.wait_with("GET", BATCH_POLL) for _ in range(10)]

    notifications.wake_all_and_close()

    assert [read(client)[1] for client in polls] == [[]] * 10


def test_a_server_that_stops_closes_the_connection_of_a_poll(server):
    waiting = server.wait_with("GET", BATCH_POLL)
    server.worker.handle_exit(None, None)

    notifications.wake_all_and_close()

    response, _ = read(waiting)
    assert response.headers["Connection"] == "close"


def test_a_poll_on_a_crowded_server_gives_its_connection_back(server, monkeypatch):
    monkeypatch.setattr(server.worker, "_crowded_from", 1)

    response, _ = read(server.send("GET", "/api/tasks/poll/batch/cut?timeout=100"))

    assert response.headers["Connection"] == "close"


def test_an_execution_waits_without_a_thread_and_starts_one_run(server, start):
    body = {"name": "order", "version": 1}
    waiting = server.send("POST", "/api/workflow/execute/order/1?waitForSeconds=60", body)
    _, [task] = read(server.send("GET", BATCH_POLL))

    report(server, task)

    _, reply = read(waiting)
    assert (reply["status"], reply["signalTimeout"]) == ("COMPLETED", False)
    assert Run.objects.count() == 1


def test_an_error_after_a_wait_has_the_format_of_others(server, start):
    waiting = server.send("POST", "/api/workflow/execute/order/1?waitForSeconds=60", {"name": "order", "version": 1})
    run_id = eventually(lambda: Run.objects.values_list("id", flat=True).first())
    eventually(notifications.count_waiting)

    Run.objects.filter(pk=run_id).delete()

    response, error = read(waiting)
    assert (response.status, error["status"]) == (404, 404)


def test_a_report_with_a_poll_waits_without_a_thread(server, start):
    start()
    _, [task] = read(server.send("GET", BATCH_POLL))

    response, _ = read(report(server, task, "/api/tasks/update-v2"))

    assert response.status == 204
    assert Run.objects.get().status == "COMPLETED"


def test_a_report_whose_connection_is_cut_counts_and_the_next_task_stays_in_its_queue(server, start):
    first, second = start(), start()
    _, [task] = read(server.send("GET", BATCH_POLL))
    assert task["workflowInstanceId"] == first
    with transaction.atomic():
        # The server cannot decide about the report before the end of this transaction.
        Run.objects.select_for_update().get(pk=first)
        report(server, task, "/api/tasks/update-v2").close()

    eventually(lambda: Run.objects.get(pk=first).status == "COMPLETED")
    _, [following] = read(server.send("GET", BATCH_POLL))
    assert (following["workflowInstanceId"], following["pollCount"]) == (second, 1)


def test_a_large_report_with_a_poll_frees_its_place_among_large_requests(server, start):
    start()
    _, [task] = read(server.send("GET", BATCH_POLL))
    ids = {name: task[name] for name in ("workflowInstanceId", "taskId")}
    large = {**ids, "status": "COMPLETED", "outputData": {"text": "x" * 100_000}}
    places = server.worker._free_large

    response, _ = read(server.send("POST", "/api/tasks/update-v2", large))

    assert response.status == 204
    eventually(lambda: server.worker._free_large == places)


def test_a_claim_of_a_standalone_task_waits_without_a_thread(server, start):
    waiting = server.wait_with("POST", CLAIM_WORK, {"workerGroup": "here", "workerId": "w1"})

    start()

    assert notifications.count_waiting() == 1
    waiting.close()


def test_a_browser_holds_a_thread_while_it_waits(client, db):
    reply = client.get(
        "/api/tasks/poll/batch/cut?timeout=100",
        headers={"cookie": "a=b"},
        **{"conductor_app.accepts_waiting_requests": True},
    )

    assert not hasattr(reply, "begin_wait")
