"""Claiming and reclaiming (taskcluster §2.4)."""

import pytest

from conductor_app.runs.models import PulseMessage

from .conftest import HOUR, LINUX, new_id, printed_messages, refusal_code


def moments(claim: dict) -> tuple[str, str]:
    run = claim["status"]["runs"][-1]
    return claim["takenUntil"], run["takenUntil"]


def test_a_claim_contains_every_field_that_a_worker_needs(queue):
    id = queue.create(payload={"command": ["true"]}, scopes=["secrets:get:x"])

    [claim] = queue.claim()

    assert claim["status"] == queue.status(id)
    assert claim["status"]["state"] == claim["status"]["runs"][0]["state"] == "running"
    assert {name: claim[name] for name in ("runId", "workerGroup", "workerId")} == {
        "runId": 0,
        "workerGroup": "here",
        "workerId": "w1",
    }
    assert claim["task"] == queue.get(f"/task/{id}").json()
    assert set(moments(claim)) == {queue.at(1200)}
    until = (queue.clock.now() + 1_200_000) // 1000
    assert claim["credentials"]["clientId"] == f"task-client/{id}/0/on/here/w1/until/{until}"
    assert {type(value) for value in claim["credentials"].values()} == {str}


def test_a_claim_is_published(queue):
    id = queue.create()

    queue.claim()

    message_names = printed_messages(id)[-1]
    assert message_names["exchange"].endswith("/task-running")
    assert message_names["payload"] == {
        "version": 1,
        "status": queue.status(id),
        "task": {"tags": {}},
        "runId": 0,
        "workerGroup": "here",
        "workerId": "w1",
        "takenUntil": queue.at(1200),
    }
    assert message_names["routingKey"] == f"primary.{id}.0.here.w1.proj.linux.-.{id}._"


def test_empty_and_unknown_queues_return_no_tasks(queue):
    queue.create()

    assert queue.claim(queue="proj/other") == []
    assert len(queue.claim(5)) == 1
    assert queue.claim() == []


def test_tasks_are_claimed_by_priority_and_then_by_age(queue):
    order = []
    for priority in ("lowest", "high", "lowest", "highest", "high"):
        order.append((priority, queue.create(priority=priority)))
        queue.later(1)
    wanted = [id for name in ("highest", "high", "lowest") for priority, id in order if priority == name]

    claims = queue.claim(2) + queue.claim(3)

    assert [claim["status"]["taskId"] for claim in claims] == wanted


def test_conductor_workers_of_the_same_queue_name_receive_no_standalone_tasks(queue):
    from conductor_app.tasks.commands.claims import claim_tasks

    queue.create()

    assert claim_tasks(LINUX, worker="of runs", wait_ms=0) == []
    assert claim_tasks("linux", domain="proj", worker="of runs", wait_ms=0) == []
    assert len(queue.claim()) == 1


def test_a_task_is_not_claimed_after_its_deadline(queue):
    queue.create(deadline=queue.at(60))
    queue.clock.advance(seconds=60)

    assert queue.claim() == []


def test_a_reclaim_extends_the_lease_without_a_message(queue):
    id = queue.create()
    queue.claim()
    queue.later(600)

    reply = queue.post(f"/task/{id}/runs/0/reclaim").json()

    assert set(moments(reply)) == {queue.at(1200)}
    assert "task" not in reply
    assert reply["status"] == queue.status(id)
    assert len(queue.message_names()) == 3


def test_a_reclaim_never_shortens_the_lease(queue, settings):
    settings.CONDUCTOR_TASKCLUSTER_CLAIM_TIMEOUT = 1200
    id = queue.create()
    [claim] = queue.claim()

    again = queue.post(f"/task/{id}/runs/0/reclaim").json()

    assert again["takenUntil"] == claim["takenUntil"]


@pytest.mark.parametrize("how", ["pending", "completed", "worker-shutdown"])
def test_only_running_tasks_can_be_reclaimed(queue, how):
    id = queue.create()
    if how != "pending":
        queue.claim_and_report(id, how)

    assert refusal_code(queue.post(f"/task/{id}/runs/0/reclaim")) == (409, "RequestConflict")


def test_unknown_and_late_runs_cannot_be_reclaimed(queue):
    id = queue.create(deadline=queue.at(HOUR))
    queue.claim()

    assert refusal_code(queue.post(f"/task/{new_id()}/runs/0/reclaim")) == (404, "ResourceNotFound")
    assert refusal_code(queue.post(f"/task/{id}/runs/7/reclaim")) == (404, "ResourceNotFound")
    queue.clock.advance(seconds=HOUR)
    assert refusal_code(queue.post(f"/task/{id}/runs/0/reclaim")) == (409, "RequestConflict")


def test_a_run_can_be_claimed_by_id_repeatedly_by_the_same_worker_only(queue):
    id = queue.create()

    first = queue.claim_specific_task(id, 0).json()

    assert first["status"] == queue.status(id)
    assert queue.claim_specific_task(id, 0).json()["takenUntil"] == first["takenUntil"]
    assert refusal_code(queue.claim_specific_task(id, 0, worker="w2")) == (409, "RequestConflict")
    assert refusal_code(queue.claim_specific_task(new_id(), 0)) == (404, "ResourceNotFound")
    assert refusal_code(queue.claim_specific_task(id, 1)) == (404, "ResourceNotFound")
    assert queue.claim() == []


def test_a_lease_that_runs_out_is_a_retry_and_then_the_end(queue):
    id = queue.create(retries=1)
    queue.claim()

    queue.later(1200)
    assert queue.runs(id) == [("exception", "scheduled", "claim-expired"), ("pending", "retry", None)]
    assert queue.status(id)["retriesLeft"] == 0
    queue.claim()
    queue.later(1200)

    assert queue.runs(id)[1] == ("exception", "retry", "claim-expired")
    assert queue.state(id) == "exception"


def test_a_reclaimed_run_outlives_its_first_lease(queue):
    id = queue.create()
    queue.claim()
    queue.later(1199)
    queue.post(f"/task/{id}/runs/0/reclaim")

    queue.later(2)

    assert queue.state(id) == "running"


def test_a_worker_in_quarantine_receives_no_tasks(queue):
    queue.create()
    worker = "/provisioners/proj/worker-types/linux/workers/here/w1"
    queue.claim(queue=LINUX, worker="w1")
    queue.create()

    queue.send("PUT", worker, {"quarantineUntil": queue.at(60)})
    assert queue.claim(worker="w1") == []
    queue.send("PUT", worker, {"quarantineUntil": queue.at(-60)})

    assert len(queue.claim(worker="w1")) == 1


def test_a_claim_takes_few_statements_for_any_number_of_tasks(queue, django_assert_max_num_queries):
    for _ in range(8):
        queue.create()
    queue.claim()

    with django_assert_max_num_queries(12):
        assert len(queue.claim(7)) == 7

    assert PulseMessage.objects.filter(name="task-running").count() == 8
