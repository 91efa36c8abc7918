"""The cluster profile as it is run: PostgreSQL, Redis, web processes, a Celery worker and beat, all of them real."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from qa.bench.client import Client
from qa.bench.servers import Server, postgresql_server

pytestmark = pytest.mark.skipif(
    "cluster" not in os.environ.get("DJANGO_SETTINGS_MODULE", "") and "CI_CLUSTER" not in os.environ,
    reason="The cluster brings its own database: once, beside the suite on PostgreSQL, is enough.",
)


NOTICED_MS = 20_000
"""The maximum duration of a second that the server measures. While other tests run, it may notice the end late."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgresql_server(web_workers=2) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Client:
    return Client(server.url, server.token)


def answered(reply: tuple[int, bytes]) -> Any:
    status, body = reply
    assert status == 200, body
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode()


def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    """Call `look` until its result is true and return it.

    Raises:
        AssertionError: the deadline has passed.
    """
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        if seen := look():
            return seen
        time.sleep(0.02)
    raise AssertionError("It did not happen in time.")


def registered(client: Client, *tasks: dict[str, Any], name: str) -> None:
    answered(client.post("/metadata/workflow", [{"name": name, "version": 1, "tasks": list(tasks)}], method="PUT"))


def test_a_client_without_a_token_is_refused(server: Server):
    status, body = Client(server.url).get("/metadata/workflow")

    assert status == 401
    assert orjson.loads(body)["error"] == "INVALID_TOKEN"


def test_a_long_poll_in_one_process_returns_when_another_starts_a_run(client: Client, server: Server):
    registered(client, {"name": "wake", "taskReferenceName": "wake"}, name="wakes")
    found = []
    for _ in range(4):
        poller = Client(server.url, server.token)
        status, body = started_while_polling(client, poller)
        found.append((status, len(orjson.loads(body))))

    assert found == [(200, 1)] * 4


def started_while_polling(client: Client, poller: Client) -> tuple[int, bytes]:
    """Return the reply to a 5 s poll during which a run is started."""
    from threading import Thread

    answers: list[tuple[int, bytes]] = []
    path = "/tasks/poll/batch/wake?workerid=w&count=1&timeout=5000"
    thread = Thread(target=lambda: answers.append(poller.get(path)))
    thread.start()
    answered(client.post("/workflow/wakes", {}))
    thread.join()
    return answers[0]


def test_a_wait_ends_and_a_lost_lease_is_noticed_without_any_request(client: Client):
    answered(
        client.post(
            "/metadata/taskdefs",
            [
                {
                    "name": "mortal",
                    "retryCount": 1,
                    "retryDelaySeconds": 0,
                    "responseTimeoutSeconds": 1,
                    "timeoutSeconds": 60,
                }
            ],
        )
    )
    wait = {"name": "wait", "taskReferenceName": "wait", "type": "WAIT", "inputParameters": {"duration": "1 s"}}
    registered(client, wait, {"name": "mortal", "taskReferenceName": "mortal"}, name="waits")
    run = answered(client.post("/workflow/waits", {}))

    poll = "/tasks/poll/batch/mortal?workerid=w&count=1&timeout=1000"
    [first] = until(lambda: answered(client.get(poll)))
    [second] = until(lambda: answered(client.get(poll)))

    assert second["retriedTaskId"] == first["taskId"]
    tasks = {task["taskId"]: task for task in answered(client.get(f"/workflow/{run}"))["tasks"]}
    waited = next(task for task in tasks.values() if task["taskType"] == "WAIT")
    assert 1000 <= waited["endTime"] - waited["startTime"] <= NOTICED_MS
    assert 1000 <= tasks[first["taskId"]]["endTime"] - first["startTime"] <= NOTICED_MS


def test_a_built_in_worker_is_notified_of_its_task(client: Client, server: Server):
    call = {
        "name": "call",
        "taskReferenceName": "call",
        "type": "HTTP",
        "inputParameters": {"uri": server.url.replace("/api", "/health"), "method": "GET"},
    }
    registered(client, call, name="calls")
    run = answered(client.post("/workflow/calls", {}))

    ended = until(lambda: over(client, run))

    # The machine itself is a private network for a cluster: the guard names the setting that allows it.
    assert ended["status"] == "FAILED"
    assert "HTTP_TASK_ALLOWED_NETWORKS" in ended["reasonForIncompletion"]


def over(client: Client, run: str) -> dict[str, Any] | None:
    """Return the run if it has ended."""
    found = answered(client.get(f"/workflow/{run}"))
    return found if found["status"] != "RUNNING" else None
