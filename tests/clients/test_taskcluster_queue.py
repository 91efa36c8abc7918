"""The official Python client of Taskcluster: tasks are created, claimed, run and resolved as on the original."""

import copy
from datetime import UTC, datetime, timedelta

import pytest
import taskcluster
from taskcluster.exceptions import TaskclusterRestFailure

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


def claimed(queue, **asked) -> list[dict]:
    return queue.claimWork(LINUX, {**WORKER, **asked})["tasks"]


def test_a_task_is_created_claimed_and_completed(queue, server):
    id = taskcluster.slugId()
    wanted = definition(payload={"command": ["true"]}, tags={"kind": "build"})

    status = queue.createTask(id, copy.deepcopy(wanted))["status"]
    assert status == queue.status(id)["status"]
    assert (status["state"], status["runs"][0]["reasonCreated"]) == ("pending", "scheduled")
    [claim] = claimed(queue)
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
