"""Operations on large task groups: the reply is immediate, and the engine continues in the background."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.runs.models import Message, Task
from conductor_app.taskcluster import store as pulse_messages
from conductor_app.taskcluster.commands import groups as bulk_actions
from conductor_app.taskcluster.commands import groups as group_commands
from tests.runs.test_statements import Counted

from .conftest import new_id, printed_messages

COUNT = 6


@pytest.fixture
def group(queue, monkeypatch):
    """Create a sealed group of six tasks, above the limit for synchronous operations; the first two are processed at
    once.
    """
    monkeypatch.setattr(group_commands, "WAITED_FOR", 3)
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 2)
    id = new_id()
    tasks = [queue.create(taskGroupId=id) for _ in range(COUNT)]
    queue.post(f"/task-group/{id}/seal")
    return id, tasks


def canceled() -> set[str]:
    return set(Task.objects.filter(status="CANCELED").values_list("pk", flat=True))


def test_a_large_group_is_canceled_within_seconds_with_immediate_messages(queue, group):
    id, tasks = group

    reply = queue.post(f"/task-group/{id}/cancel").json()

    assert reply == {"taskGroupId": id, "taskGroupSize": COUNT, "cancelledCount": COUNT, "taskIds": sorted(tasks)}
    assert len(canceled()) == 2
    queue.later(2)
    assert canceled() == set(tasks)
    assert queue.message_names().count("task-exception") == COUNT
    assert queue.message_names()[-1] == "task-group-resolved"
    assert not Message.objects.exists()


def test_a_repeated_cancel_is_executed_once(queue, group):
    id, _ = group
    queue.post(f"/task-group/{id}/cancel")

    assert queue.post(f"/task-group/{id}/cancel").json()["cancelledCount"] == 0
    queue.later(2)
    assert queue.message_names().count("task-exception") == COUNT


def test_tasks_rerun_concurrently_are_not_canceled(queue, group):
    id, tasks = group
    queue.claim_and_report(tasks[-1])
    queue.post(f"/task-group/{id}/cancel")
    [left] = [each for each in tasks[:-1] if each not in canceled()][-1:]
    queue.post(f"/task/{left}/cancel")
    queue.clock.advance(seconds=0.001)
    queue.post(f"/task/{left}/rerun")

    queue.later(2)

    assert queue.state(left) == "pending"
    assert canceled() == {*tasks[:-1]} - {left}


def test_a_priority_change_reaches_every_task_of_a_large_group(queue, group):
    id, tasks = group

    reply = queue.post(f"/task-group/{id}/priority", {"newPriority": "high"}).json()
    again = queue.post(f"/task-group/{id}/priority", {"newPriority": "high"}).json()

    assert (reply["tasksAffected"], again["tasksAffected"]) == (COUNT, 0)
    queue.later(2)
    assert {queue.status(each)["priority"] for each in tasks} == {"high"}


def test_the_response_takes_the_same_statements_for_any_number_of_tasks(queue, group):
    id, _ = group

    with Counted() as counted:
        queue.client.post(f"/api/queue/v1/task-group/{id}/cancel")

    assert counted.count <= 9, counted.statements
    assert canceled() == set()


def test_the_audit_records_the_caller(queue, group):
    id, tasks = group
    queue.post(f"/task-group/{id}/cancel")
    queue.later(2)

    entries = AuditEntry.objects.filter(action="cancel")
    assert set(entries.values_list("object_id", "actor")) == {(each, "anonymous") for each in (id, *tasks)}


def test_repeated_messages_do_not_accumulate(queue, monkeypatch):
    monkeypatch.setattr(pulse_messages, "MAX_MESSAGES", 5)
    other, id = queue.create(), queue.create()
    queue.claim_and_report(id)

    for _ in range(20):
        queue.report(id, 0, "completed")

    assert queue.message_names(id) == ["task-completed"] * 5
    assert queue.message_names(other) == ["task-defined", "task-pending"]
    assert len(printed_messages(id, "task-completed")) == 5
