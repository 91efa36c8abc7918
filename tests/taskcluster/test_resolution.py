"""Resolution of runs, and requests about resolved runs (taskcluster §2.1, §2.6)."""

import pytest

from .conftest import new_id, printed_messages, refusal_code

CONFLICT = (409, "RequestConflict")
FINAL = ("malformed-payload", "resource-unavailable", "internal-error")
RETRIED = {"worker-shutdown": "retry", "intermittent-task": "task-retry"}


@pytest.mark.parametrize("how", ["completed", "failed"])
def test_a_resolution_is_stored_and_published_and_can_be_repeated(queue, how):
    id = queue.create()
    queue.claim_and_report(id, how)

    again = queue.report(id, 0, how)

    assert again.json()["status"] == queue.status(id)
    assert queue.runs(id) == [(how, "scheduled", how)]
    assert queue.message_names(id)[3:] == [f"task-{how}", f"task-{how}"]
    assert queue.status(id)["runs"][0]["resolved"] == queue.at(0)


def test_the_legacy_body_of_completed_can_report_a_failure(queue):
    id = queue.create()
    queue.claim_specific_task(id)

    reply = queue.post(f"/task/{id}/runs/0/completed", {"success": False})

    assert reply.json()["status"]["state"] == "failed"


@pytest.mark.parametrize("reason", FINAL)
def test_some_exceptions_are_final_despite_remaining_retries(queue, reason):
    id = queue.create(retries=5)

    queue.claim_and_report(id, reason)

    assert queue.runs(id) == [("exception", "scheduled", reason)]
    assert queue.report(id, 0, reason).json()["status"] == queue.status(id)
    assert queue.message_names(id)[3:] == ["task-exception", "task-exception"]


@pytest.mark.parametrize(("reason", "cause"), RETRIED.items())
def test_others_are_retried_while_retries_are_left(queue, reason, cause):
    id = queue.create(retries=1)

    queue.claim_and_report(id, reason)
    assert queue.runs(id) == [("exception", "scheduled", reason), ("pending", cause, None)]
    assert (queue.state(id), queue.status(id)["retriesLeft"]) == ("pending", 0)
    queue.claim_and_report(id, reason)

    assert queue.runs(id)[1] == ("exception", cause, reason)
    assert queue.state(id) == "exception"


def test_only_the_last_exception_of_a_retried_task_is_published(queue):
    id = queue.create(retries=1)

    queue.claim_and_report(id, "worker-shutdown")
    assert queue.message_names(id) == ["task-defined", "task-pending", "task-running", "task-pending"]
    queue.claim_and_report(id, "worker-shutdown")

    assert queue.message_names(id)[4:] == ["task-running", "task-exception"]
    assert printed_messages(id, "task-exception")[-1]["payload"]["runId"] == 1


def test_a_setting_publishes_each_exception(queue, settings):
    settings.CONDUCTOR_TASKCLUSTER_EXCEPTION_MESSAGES = "every"
    id = queue.create(retries=1)

    queue.claim_and_report(id, "worker-shutdown")

    assert queue.message_names(id)[3:] == ["task-exception", "task-pending"]
    assert printed_messages(id)[3]["payload"]["runId"] == 0


ENDS = ("completed", "failed", *FINAL, *RETRIED)


@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("second", ENDS)
def test_a_resolution_cannot_be_replaced_by_another(queue, first, second):
    id = queue.create(retries=1)
    queue.claim_and_report(id, first)
    before = queue.status(id)

    reply = queue.report(id, 0, second)

    assert reply.status_code == (200 if first == second else 409)
    assert queue.status(id) == before


def test_an_exception_can_be_repeated_until_a_second_run_follows(queue):
    id = queue.create(retries=5)
    queue.claim_and_report(id, "worker-shutdown")

    assert queue.report(id, 0, "worker-shutdown").status_code == 200
    queue.claim_and_report(id, "worker-shutdown")

    assert refusal_code(queue.report(id, 0, "worker-shutdown")) == CONFLICT
    assert len(queue.runs(id)) == 3


@pytest.mark.parametrize("how", ENDS)
def test_an_unclaimed_run_cannot_be_resolved(queue, how):
    id = queue.create()

    assert refusal_code(queue.report(id, 0, how)) == CONFLICT
    assert refusal_code(queue.report(id, 1, how)) == (404, "ResourceNotFound")
    assert refusal_code(queue.report(new_id(), 0, how)) == (404, "ResourceNotFound")


def test_a_reason_that_no_worker_has_is_refused(queue):
    id = queue.create()
    queue.claim_specific_task(id)

    assert refusal_code(queue.report(id, 0, "claim-expired")) == (400, "InputValidationError")


def test_a_report_takes_few_statements(queue, django_assert_max_num_queries):
    id = queue.create()
    queue.claim_specific_task(id)

    with django_assert_max_num_queries(18):
        queue.report(id, 0, "completed")
