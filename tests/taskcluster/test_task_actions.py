"""Cancel, rerun, schedule, another priority (taskcluster §2.7)."""

import pytest

from .conftest import HOUR, new_id, printed_messages, refusal_code

CONFLICT = (409, "RequestConflict")


def steer(queue, id: str, verb: str):
    return queue.post(f"/task/{id}/{verb}")


def test_a_pending_task_is_canceled_and_may_be_canceled_again(queue):
    id = queue.create()

    first, again = (steer(queue, id, "cancel").json()["status"] for _ in range(2))

    assert first == again
    assert queue.runs(id) == [("exception", "scheduled", "canceled")]
    assert queue.message_names(id)[2:] == ["task-exception", "task-exception"]
    assert queue.claim() == []


def test_an_unscheduled_canceled_task_gets_a_run_that_states_the_reason(queue):
    id = queue.create(dependencies=[queue.create()])

    steer(queue, id, "cancel")

    assert queue.runs(id) == [("exception", "exception", "canceled")]
    [run] = queue.status(id)["runs"]
    assert not {"workerGroup", "workerId", "started", "takenUntil"} & set(run)
    assert steer(queue, id, "schedule").json()["status"]["state"] == "exception"


def test_a_worker_of_a_canceled_task_is_notified_at_its_next_request(queue):
    id = queue.create()
    queue.claim_specific_task(id)

    steer(queue, id, "cancel")

    assert refusal_code(queue.post(f"/task/{id}/runs/0/reclaim")) == CONFLICT
    assert refusal_code(queue.report(id, 0, "completed")) == CONFLICT
    assert printed_messages(id, "task-exception")[-1]["payload"]["workerId"] == "w1"


def test_a_resolved_task_cannot_be_canceled(queue):
    id = queue.create()
    queue.claim_and_report(id)
    before = queue.status(id)

    assert steer(queue, id, "cancel").json()["status"] == before
    assert queue.message_names(id)[-1] == "task-completed"


@pytest.mark.parametrize("how", ["completed", "failed", "malformed-payload"])
def test_a_resolved_task_is_rerun_with_all_its_retries(queue, how):
    id = queue.create(retries=2)
    queue.claim_and_report(id, "worker-shutdown")
    queue.claim_and_report(id, how)

    steer(queue, id, "rerun")

    assert queue.runs(id)[-1] == ("pending", "rerun", None)
    assert queue.status(id)["retriesLeft"] == 2
    queue.claim_and_report(id)
    assert steer(queue, id, "rerun").json()["status"]["state"] == "pending"


def test_an_unscheduled_task_is_run_whatever_it_waits_for(queue):
    id = queue.create(dependencies=[queue.create()])

    assert steer(queue, id, "rerun").json()["status"]["runs"][0]["reasonCreated"] == "rerun"


def test_scheduling_a_pending_task_publishes_again_and_a_running_one_does_not(queue):
    id = queue.create()

    steer(queue, id, "rerun")
    assert queue.message_names(id)[1:] == ["task-pending", "task-pending"]
    queue.claim_specific_task(id)
    steer(queue, id, "rerun")

    assert queue.runs(id) == [("running", "scheduled", None)]
    assert queue.message_names(id)[-1] == "task-running"


def test_a_task_has_fifty_runs_at_most(queue):
    id = queue.create(retries=49)
    for _ in range(49):
        queue.claim_and_report(id)
        steer(queue, id, "rerun")
    assert queue.status(id)["retriesLeft"] == 0

    queue.claim_and_report(id, "worker-shutdown")

    assert queue.state(id) == "exception"
    assert refusal_code(steer(queue, id, "rerun")) == CONFLICT
    assert len(queue.runs(id)) == 50


@pytest.mark.parametrize("verb", ["cancel", "rerun", "schedule"])
def test_unknown_and_late_tasks_cannot_be_changed(queue, verb):
    id = queue.create(deadline=queue.at(HOUR))

    assert refusal_code(steer(queue, new_id(), verb)) == (404, "ResourceNotFound")
    queue.clock.advance(seconds=HOUR + 1)
    assert refusal_code(steer(queue, id, verb)) == CONFLICT


def test_a_priority_change_reorders_pending_tasks(queue):
    first = queue.create()
    queue.later(1)
    second = queue.create()

    reply = queue.post(f"/task/{second}/priority", {"newPriority": "high"})

    assert reply.json()["status"]["priority"] == queue.get(f"/task/{second}").json()["priority"] == "high"
    assert [claim["status"]["taskId"] for claim in queue.claim(2)] == [second, first]
    [message_names] = printed_messages(second, "task-priority-changed")
    assert (message_names["payload"]["oldPriority"], message_names["payload"]["newPriority"]) == ("lowest", "high")


def test_a_priority_change_applies_to_unscheduled_tasks_and_later_runs(queue):
    first = queue.create()
    second = queue.create(dependencies=[first])
    queue.post(f"/task/{second}/priority", {"newPriority": "high"})
    queue.claim_and_report(first)
    queue.later(1)
    third = queue.create(priority="medium")

    assert [claim["status"]["taskId"] for claim in queue.claim(2)] == [second, third]
    queue.report(second, 0, "worker-shutdown")
    queue.report(third, 0, "worker-shutdown")
    assert [claim["status"]["taskId"] for claim in queue.claim(2)] == [second, third]


def test_the_priority_of_a_resolved_task_or_an_equal_priority_stays_unchanged(queue):
    id = queue.create(priority="high")

    assert refusal_code(queue.post(f"/task/{id}/priority", {"newPriority": "high"})) == CONFLICT
    assert refusal_code(queue.post(f"/task/{id}/priority", {"newPriority": "normal"})) == (400, "InputValidationError")
    queue.claim_and_report(id)
    steer(queue, id, "rerun")
    assert refusal_code(queue.post(f"/task/{id}/priority", {"newPriority": "low"})) == CONFLICT
