"""Groups of tasks (taskcluster §1.5, §2.7)."""

import pytest

from conductor_app.runs.models import PulseMessage

from .conftest import HOUR, new_id, printed_messages, refusal_code

CONFLICT = (409, "RequestConflict")


@pytest.fixture
def group(queue):
    return new_id()


def test_a_group_is_made_with_its_first_task_and_outlives_it(queue, group):
    queue.create(taskGroupId=group, schedulerId="ci", expires=queue.at(2 * HOUR))

    shown = queue.get(f"/task-group/{group}").json()
    assert shown == {"taskGroupId": group, "schedulerId": "ci", "expires": queue.at(3 * HOUR)}
    queue.create(taskGroupId=group, schedulerId="ci", expires=queue.at(9 * HOUR))

    assert queue.get(f"/task-group/{group}").json()["expires"] == queue.at(10 * HOUR)


def test_its_tasks_are_listed_in_pages(queue, group):
    ids = sorted(queue.create(taskGroupId=group) for _ in range(5))
    queue.create()

    found, token = [], {}
    while token is not None:
        page = queue.get(f"/task-group/{group}/list", limit=2, **token).json()
        assert page["taskGroupId"] == group
        found += page["tasks"]
        token = {"continuationToken": page["continuationToken"]} if "continuationToken" in page else None

    assert [each["status"]["taskId"] for each in found] == ids
    assert found[0] == {"status": queue.status(ids[0]), "task": queue.get(f"/task/{ids[0]}").json()}


@pytest.mark.parametrize(
    ("verb", "path"),
    [("GET", ""), ("GET", "/list"), ("POST", "/seal"), ("POST", "/cancel"), ("POST", "/priority")],
)
def test_an_unknown_group_is_not_found(queue, group, verb, path):
    body = {"newPriority": "high"} if path == "/priority" else None

    assert refusal_code(queue.send(verb, f"/task-group/{group}{path}", body)) == (404, "ResourceNotFound")


def test_a_sealed_group_accepts_no_tasks_and_keeps_its_time(queue, group):
    id = queue.create(taskGroupId=group)

    first = queue.post(f"/task-group/{group}/seal").json()
    queue.later(5)
    again = queue.post(f"/task-group/{group}/seal").json()

    assert first == again == queue.get(f"/task-group/{group}").json()
    assert first["sealed"] == queue.at(-5)
    assert refusal_code(queue.request_creation(new_id(), taskGroupId=group)) == CONFLICT
    assert refusal_code(queue.request_creation(id, taskGroupId=group)) == CONFLICT
    assert PulseMessage.objects.filter(name="task-group-sealed").count() == 2


def test_a_sealed_group_is_canceled_as_far_as_it_is_open(queue, group):
    ids = sorted(queue.create(taskGroupId=group) for _ in range(3))
    waiting = queue.create(taskGroupId=group, dependencies=[ids[0]])
    done = queue.create(taskGroupId=group)
    queue.claim_and_report(done)
    assert refusal_code(queue.post(f"/task-group/{group}/cancel")) == CONFLICT
    queue.post(f"/task-group/{group}/seal")

    reply = queue.post(f"/task-group/{group}/cancel").json()

    assert reply == {
        "taskGroupId": group,
        "taskGroupSize": 5,
        "cancelledCount": 4,
        "taskIds": sorted([*ids, waiting]),
    }
    assert {queue.runs(id)[-1][2] for id in (*ids, waiting)} == {"canceled"}
    assert queue.state(done) == "completed"
    assert queue.post(f"/task-group/{group}/cancel").json()["cancelledCount"] == 0
    assert queue.message_names().count("task-exception") == 4
    assert "task-group-resolved" in queue.message_names()


def test_all_that_was_never_resolved_gets_another_priority(queue, group):
    pending, done = queue.create(taskGroupId=group), queue.create(taskGroupId=group)
    waiting = queue.create(taskGroupId=group, dependencies=[pending])
    queue.claim_and_report(done)

    reply = queue.post(f"/task-group/{group}/priority", {"newPriority": "high"}).json()

    assert reply == {
        "taskGroupId": group,
        "schedulerId": "-",
        "newPriority": "high",
        "tasksAffected": 2,
        "taskIds": sorted([pending, waiting]),
    }
    assert [queue.status(id)["priority"] for id in (pending, waiting, done)] == ["high", "high", "lowest"]
    [message_names] = printed_messages(group, "task-group-priority-changed")
    assert message_names["payload"] == {
        "version": 1, "taskGroupId": group, "schedulerId": "-", "newPriority": "high", "tasksAffected": 2
    }  # fmt: skip
