"""An error of the moment at any call delays a worker's request, and loses neither its task nor its report."""

import pytest

from conductor_app.db.transient_errors import discard_broken_connection
from conductor_app.taskcluster.commands import tasks as claims
from tests.clients.wait_until import eventually
from tests.fault_injection import ERRORS, FaultInjector

from .conftest import LINUX, Queue

pytestmark = pytest.mark.parametrize("kind", ERRORS)
BODY = {"workerGroup": "here", "workerId": "w1", "tasks": 1}


@pytest.fixture
def queue(faults: FaultInjector, clock, monkeypatch) -> Queue:
    monkeypatch.setattr(claims, "CLAIM_WAIT_SECONDS", 0.0)
    return Queue(clock)


def test_a_task_whose_claim_was_not_answered_is_given_to_the_next_worker(kind, faults, queue):
    for fault in faults.at_each_call(kind):
        id = queue.create()
        with fault:
            reply = queue.post(f"/claim-work/{LINUX}", BODY)
        discard_broken_connection()

        assert reply.status_code == 200 or (reply.status_code, reply.headers["Retry-After"]) == (503, "1"), str(fault)
        # PostgreSQL rolls back the transaction of a closed connection a moment later. Until then its row stays locked.
        claimed = reply.json().get("tasks") if reply.status_code == 200 else None
        claimed = claimed or eventually(lambda: queue.claim(worker="w2"))
        assert [each["status"]["taskId"] for each in claimed] == [id], str(fault)
        assert queue.runs(id) == [("running", "scheduled", None)], str(fault)
        queue.report(id, 0, "completed")


def test_a_claim_of_one_task_can_be_repeated(kind, faults, queue):
    for fault in faults.at_each_call(kind):
        id = queue.create()
        with fault:
            first = queue.claim_specific_task(id, run=0)
        discard_broken_connection()
        assert first.status_code in (200, 503), str(fault)

        assert queue.claim_specific_task(id).json()["status"]["taskId"] == id, str(fault)
        queue.report(id, 0, "completed")


def test_a_report_can_be_repeated(kind, faults, queue):
    for fault in faults.at_each_call(kind):
        id = queue.create()
        queue.claim()
        with fault:
            first = queue.report(id, 0, "completed")
        discard_broken_connection()
        assert first.status_code in (200, 503), str(fault)

        assert queue.report(id, 0, "completed").status_code == 200, str(fault)
        assert queue.runs(id) == [("completed", "scheduled", "completed")], str(fault)
