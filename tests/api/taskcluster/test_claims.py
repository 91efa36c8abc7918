"""Claiming and reclaiming (taskcluster §2.4)."""

import pytest

from conductor_app.models import PulseMessage

from .conftest import HOUR, LINUX, new_id, printed_messages, refusal_code


def moments(claim: dict) -> tuple[str, str]:
    run = claim["status"]["runs"][-1]
    return claim["takenUntil"], run["takenUntil"]


def test_a_claim_hands_over_all_that_a_worker_needs(queue):
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


def test_a_claim_is_told(queue):
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


def test_an_empty_queue_and_a_queue_that_nobody_knows_give_nothing(queue):
    queue.create()

    assert queue.claim(queue="proj/other") == []
    assert len(queue.claim(5)) == 1
    assert queue.claim() == []


def test_what_is_more_urgent_comes_first_and_then_what_has_waited_longest(queue):
    order = []
    for priority in ("lowest", "high", "lowest", "highest", "high"):
        order.append((priority, queue.create(priority=priority)))
        queue.later(1)
    wanted = [id for name in ("highest", "high", "lowest") for priority, id in order if priority == name]

    claims = queue.claim(2) + queue.claim(3)

    assert [claim["status"]["taskId"] for claim in claims] == wanted


def test_the_workers_of_a_task_type_of_the_same_name_are_handed_nothing(queue):
    from conductor_app.engine.tasks import task_commands

    queue.create()

    assert task_commands.claim_tasks(LINUX, worker="of runs", wait_ms=0) == []
    assert task_commands.claim_tasks("linux", domain="proj", worker="of runs", wait_ms=0) == []
    assert len(queue.claim()) == 1


def test_nothing_is_handed_out_once_its_deadline_has_come(queue):
    queue.create(deadline=queue.at(60))
    queue.clock.advance(seconds=60)

    assert queue.claim() == []


def test_a_reclaim_lasts_longer_and_tells_nobody(queue):
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
def test_only_what_is_running_is_reclaimed(queue, how):
    id = queue.create()
    if how != "pending":
        queue.claim_and_report(id, how)

    assert refusal_code(queue.post(f"/task/{id}/runs/0/reclaim")) == (409, "RequestConflict")


def test_nothing_is_reclaimed_that_is_not_there_or_late(queue):
    id = queue.create(deadline=queue.at(HOUR))
    queue.claim()

    assert refusal_code(queue.post(f"/task/{new_id()}/runs/0/reclaim")) == (404, "ResourceNotFound")
    assert refusal_code(queue.post(f"/task/{id}/runs/7/reclaim")) == (404, "ResourceNotFound")
    queue.clock.advance(seconds=HOUR)
    assert refusal_code(queue.post(f"/task/{id}/runs/0/reclaim")) == (409, "RequestConflict")


def test_one_run_is_claimed_by_its_name_and_again_by_the_same_worker_only(queue):
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


def test_a_worker_in_quarantine_is_handed_nothing(queue):
    queue.create()
    worker = "/provisioners/proj/worker-types/linux/workers/here/w1"
    queue.claim(queue=LINUX, worker="w1")
    queue.create()

    queue.send("PUT", worker, {"quarantineUntil": queue.at(60)})
    assert queue.claim(worker="w1") == []
    queue.send("PUT", worker, {"quarantineUntil": queue.at(-60)})

    assert len(queue.claim(worker="w1")) == 1


def test_a_claim_takes_few_statements_however_many_tasks_it_takes(queue, django_assert_max_num_queries):
    for _ in range(8):
        queue.create()
    queue.claim()

    with django_assert_max_num_queries(12):
        assert len(queue.claim(7)) == 7

    assert PulseMessage.objects.filter(name="task-running").count() == 8
