"""The official Python client of Taskcluster: tasks are created, claimed, run and resolved as on the original."""

import copy
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import taskcluster
from taskcluster.exceptions import TaskclusterRestFailure

from conductor_app import notifications
from tests.clients.wait_until import eventually

WORKER = {"workerGroup": "here", "workerId": "w1"}
LINUX = "proj/linux"


def moment(**later: float) -> str:
    return (datetime.now(UTC) + timedelta(**later)).isoformat().replace("+00:00", "Z")


def definition(**fields) -> dict:
    metadata = {"name": "build", "description": "", "owner": "me@example.org", "source": "https://example.org/"}
    moments = {"created": moment(), "deadline": moment(hours=1)}
    return {"taskQueueId": LINUX, **moments, "payload": {}, "metadata": metadata, **fields}


@pytest.fixture
def queue(server: str) -> taskcluster.Queue:
    return taskcluster.Queue({"rootUrl": server})


def created(queue, **fields) -> str:
    id = taskcluster.slugId()
    queue.createTask(id, definition(**fields))
    return id


def claim_tasks(queue, **asked) -> list[dict]:
    return queue.claimWork(LINUX, {**WORKER, **asked})["tasks"]


def test_a_task_is_created_claimed_and_completed(queue, server):
    id = taskcluster.slugId()
    wanted = definition(payload={"command": ["true"]}, tags={"kind": "build"})

    status = queue.createTask(id, copy.deepcopy(wanted))["status"]
    assert status == queue.status(id)["status"]
    assert (status["state"], status["runs"][0]["reasonCreated"]) == ("pending", "scheduled")
    [claim] = claim_tasks(queue)
    assert claim["task"] == queue.task(id)
    assert claim["task"]["payload"] == wanted["payload"]
    assert claim["status"] == queue.status(id)["status"]
    assert (claim["runId"], claim["workerId"]) == (0, "w1")

    worker = taskcluster.Queue({"rootUrl": server, "credentials": dict(claim["credentials"])})
    again = worker.reclaimTask(id, 0)
    assert again["takenUntil"] >= claim["takenUntil"]
    done = worker.reportCompleted(id, 0)["status"]

    assert done["state"] == "completed"
    assert done == worker.reportCompleted(id, 0)["status"] == queue.status(id)["status"]
    with pytest.raises(TaskclusterRestFailure) as refused:
        worker.reportFailed(id, 0)
    assert (refused.value.status_code, refused.value.body["code"]) == (409, "RequestConflict")


VALUES = {
    "taskId": "V3Wzk-6rT9yQ1uY2o0nJ5A", "taskGroupId": "V3Wzk-6rT9yQ1uY2o0nJ5A", "runId": "0", "taskQueueId": LINUX,
    "provisionerId": "proj", "workerType": "linux", "workerGroup": "here", "workerId": "w1", "name": "public/a b.txt",
}  # fmt: skip


def test_every_method_of_the_client_has_its_address(queue):
    strangers = []
    for name, method in taskcluster.Queue.funcinfo.items():
        body = [{}] if method.get("input") else []
        try:
            getattr(queue, name)(*(VALUES[each] for each in method["args"]), *body)
        except TaskclusterRestFailure as refused:
            # Replies of known paths have an error code; unknown paths do not.
            strangers += [] if "code" in (refused.body or {}) else [name]

    assert strangers == []


def test_a_waiting_worker_receives_a_new_task_at_once(queue, server):
    with ThreadPoolExecutor(1) as hands:
        waiting = hands.submit(claim_tasks, taskcluster.Queue({"rootUrl": server}))
        eventually(lambda: notifications.count_waiting())
        id = created(queue)

        [claim] = waiting.result(15)

    assert claim["status"]["taskId"] == id


def test_a_graph_is_worked_off_in_its_order(queue):
    group = taskcluster.slugId()
    sources = created(queue, taskGroupId=group)
    tests = [created(queue, taskGroupId=group, dependencies=[sources]) for _ in range(3)]
    release = created(queue, taskGroupId=group, dependencies=tests)
    queue.sealTaskGroup(group)
    order = []
    while len(order) < 5:
        for claim in claim_tasks(queue, tasks=4):
            order.append(claim["status"]["taskId"])
            queue.reportCompleted(order[-1], claim["runId"])

    assert (order[0], set(order[1:4]), order[4]) == (sources, set(tests), release)
    pages = []
    queue.listTaskGroup(group, paginationHandler=pages.append, query={"limit": 2})
    assert [len(page["tasks"]) for page in pages] == [2, 2, 1]
    assert {each["status"]["state"] for page in pages for each in page["tasks"]} == {"completed"}


def test_a_refusal_is_an_error_of_the_clients_with_its_code(queue):
    with pytest.raises(TaskclusterRestFailure, match="does not exist") as refused:
        queue.task("V3Wzk-6rT9yQ1uY2o0nJ5A")

    assert (refused.value.status_code, refused.value.body["code"]) == (404, "ResourceNotFound")
