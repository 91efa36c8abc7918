"""A worker that disconnects during a long poll gets no task: the next worker gets it at once."""

from http.client import HTTPConnection

import pytest
import taskcluster

from conductor_app.telemetry.metrics import WAITING_POLLS
from tests.clients.shop_workflow import Shop
from tests.clients.wait_until import eventually

from .test_taskcluster_queue import LINUX, claim_tasks, created


def somebody_waits() -> bool:
    return any(sample.value for metric in WAITING_POLLS.collect() for sample in metric.samples)


@pytest.fixture
def hang_up(server):
    """Poll, wait until the server waits for a task, and disconnect."""

    def ask(method: str, path: str, body: str = "") -> None:
        client = HTTPConnection(server.removeprefix("http://"))
        client.request(method, path, body, {"Content-Type": "application/json"})
        eventually(somebody_waits)
        client.close()

    return ask


def test_a_task_is_not_lost_to_an_abandoned_poll(shop: Shop, hang_up):
    shop.define("cut")
    hang_up("GET", "/api/tasks/poll/batch/cut?workerid=gone&timeout=5000")
    shop.start()

    task = shop.take("cut")

    assert (task.worker_id, task.poll_count) == ("tester", 1)


def test_a_run_is_not_lost_to_an_abandoned_claim(server, hang_up):
    queue = taskcluster.Queue({"rootUrl": server})
    hang_up("POST", f"/api/queue/v1/claim-work/{LINUX}", '{"workerGroup": "here", "workerId": "gone"}')
    id = created(queue)

    [claim] = claim_tasks(queue)

    assert (claim["status"]["taskId"], claim["runId"], claim["workerId"]) == (id, 0, "w1")
