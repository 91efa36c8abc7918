"""Creating tasks (taskcluster §1.6)."""

import pytest

from .conftest import HOUR, LINUX, new_id, printed_messages, refusal_code

CONFLICT = (409, "RequestConflict")
INPUT = (400, "InputError")
SCHEMA = (400, "InputValidationError")


def test_the_response_equals_the_later_status(queue):
    id = new_id()

    reply = queue.request_creation(id)

    assert reply.json() == queue.get(f"/task/{id}/status").json()
    assert queue.runs(id) == [("pending", "scheduled", None)]


def test_a_minimal_definition_gets_all_defaults(queue):
    id = queue.create()

    task = queue.get(f"/task/{id}").json()

    assert {name: task[name] for name in task if name not in ("created", "metadata")} == {
        "provisionerId": "proj",
        "workerType": "linux",
        "taskQueueId": LINUX,
        "schedulerId": "-",
        "projectId": "none",
        "taskGroupId": id,
        "dependencies": [],
        "requires": "all-completed",
        "routes": [],
        "priority": "lowest",
        "retries": 5,
        "deadline": queue.at(HOUR),
        "expires": "2028-03-01T13:00:00.000Z",
        "scopes": [],
        "payload": {},
        "tags": {},
        "extra": {},
    }


def test_creation_publishes_the_defined_and_the_pending_message(queue):
    id = queue.create(tags={"kind": "test"}, routes=["index.a.b"])

    defined, pending = printed_messages(id)

    assert defined["exchange"] == "exchange/taskcluster-queue/v1/task-defined"
    assert (defined["payload"]["status"]["state"], defined["payload"]["version"]) == ("unscheduled", 1)
    assert defined["payload"]["task"] == {"tags": {"kind": "test"}}
    assert pending["exchange"] == "exchange/taskcluster-queue/v1/task-pending"
    assert pending["payload"] == {
        "version": 1,
        "status": queue.status(id),
        "task": {"tags": {"kind": "test"}},
        "runId": 0,
    }
    assert pending["routingKey"] == f"primary.{id}.0._._.proj.linux.-.{id}._"
    assert pending["cc"] == ["route.index.a.b"]


def test_repeating_the_same_definition_changes_nothing_and_publishes_again(queue):
    definition, id = queue.definition(created="2027-03-01T12:00:00.1234567Z"), new_id()

    first = queue.send("PUT", f"/task/{id}", definition)
    again = queue.send("PUT", f"/task/{id}", {**definition, "created": "2027-03-01T13:00:00.1239+01:00"})

    assert first.json() == again.json()
    assert queue.message_names() == ["task-defined", "task-pending"] * 2
    assert len(queue.claim(5)) == 1


def test_another_definition_for_the_same_task_is_a_conflict(queue):
    id = queue.create()

    assert refusal_code(queue.request_creation(id, payload={"other": True})) == CONFLICT


def test_a_repeat_after_a_priority_change_is_a_conflict(queue):
    id = queue.create()
    assert queue.post(f"/task/{id}/priority", {"newPriority": "high"}).status_code == 200

    assert refusal_code(queue.request_creation(id)) == CONFLICT


QUEUES = {
    "one name": {"taskQueueId": LINUX},
    "two parts": {"taskQueueId": None, "provisionerId": "proj", "workerType": "linux"},
    "all three": {"provisionerId": "proj", "workerType": "linux"},
}


@pytest.mark.parametrize("names", QUEUES.values(), ids=QUEUES)
def test_a_queue_has_one_of_two_name_forms(queue, names):
    id = queue.create(**names)

    assert queue.status(id)["taskQueueId"] == LINUX
    assert [claim["status"]["taskId"] for claim in queue.claim()] == [id]


REFUSED = {
    "two queues": ({"provisionerId": "other", "workerType": "linux"}, INPUT),
    "no queue": ({"taskQueueId": None}, INPUT),
    "half a queue": ({"taskQueueId": None, "provisionerId": "proj"}, INPUT),
    "a scope that ends in two stars": ({"scopes": ["queue:**"]}, INPUT),
    "the priority normal": ({"priority": "normal"}, SCHEMA),
    "an unknown field": ({"colour": "red"}, SCHEMA),
    "an unknown field of the metadata": ({"metadata": {"name": "n", "colour": "red"}}, SCHEMA),
    "too many retries": ({"retries": 50}, SCHEMA),
    "a payload that is no object": ({"payload": []}, SCHEMA),
    "no payload": ({"payload": None}, SCHEMA),
    "twice the same dependency": ({"dependencies": ["A" * 8 + "QAGAAAAAAAAAAA"] * 2}, SCHEMA),
    "a group that is no slug": ({"taskGroupId": "mine"}, SCHEMA),
    "a date without a zone": ({"deadline": "2027-03-01T13:00:00"}, SCHEMA),
    "a date that does not exist": ({"deadline": "2027-02-30T13:00:00Z"}, SCHEMA),
}


@pytest.mark.parametrize(("fields", "expected"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_task_is_rejected_and_leaves_nothing(queue, fields, expected):
    id = new_id()

    assert refusal_code(queue.request_creation(id, **fields)) == expected
    assert queue.get(f"/task/{id}").status_code == 404


MOMENTS = {
    "created too long ago": {"created": -20 * 60},
    "created in the future": {"created": 20 * 60},
    "created after the deadline": {"created": 60, "deadline": 30},
    "a deadline that has passed": {"created": -600, "deadline": -60},
    "a deadline in six days": {"deadline": 6 * 24 * HOUR},
    "an end before the deadline": {"expires": HOUR / 2},
}


@pytest.mark.parametrize("moments", MOMENTS.values(), ids=MOMENTS)
def test_times_must_be_in_order(queue, moments):
    assert (
        refusal_code(queue.request_creation(new_id(), **{name: queue.at(seconds) for name, seconds in moments.items()}))
        == INPUT
    )


@pytest.mark.parametrize("source", ["ssh://example.org/x", "git@example.org:x", "http://example.org"])
def test_the_source_may_be_a_repository(queue, source):
    metadata = {"name": "n", "description": "", "owner": "o", "source": source}

    queue.create(metadata=metadata)

    assert (
        refusal_code(queue.request_creation(new_id(), metadata={**metadata, "source": "ftp://example.org"})) == SCHEMA
    )


def test_the_end_of_all_calendars_is_an_end_for_a_group_too(queue):
    last = "9999-12-31T23:59:59.999Z"
    id = queue.create(expires=last)

    assert queue.get(f"/task-group/{id}").json()["expires"] == last


def test_an_integer_can_be_written_as_a_decimal(queue):
    id = queue.create(retries=1.0)

    assert queue.status(id)["retriesLeft"] == 1
    assert len(queue.claim(1.0)) == 1


def test_an_id_that_is_no_slug_is_refused(queue):
    assert refusal_code(queue.request_creation("not-a-slug-id")) == (400, "InvalidRequestArguments")


def test_a_task_of_another_scheduler_does_not_join_a_group(queue):
    group = new_id()
    queue.create(taskGroupId=group, schedulerId="one")

    assert refusal_code(queue.request_creation(new_id(), taskGroupId=group, schedulerId="two")) == CONFLICT


def test_several_tasks_are_returned_at_once_without_unknown_ones(queue):
    ids = sorted(queue.create() for _ in range(3))

    def pages(path: str, name: str) -> list:
        found, token = [], {}
        while True:
            reply = queue.post(path, {"taskIds": [*ids, new_id(), "nonsense"]}, limit="2", **token).json()
            found += reply[name]
            if "continuationToken" not in reply:
                return found
            token = {"continuationToken": reply["continuationToken"]}

    assert [each["taskId"] for each in pages("/tasks", "tasks")] == ids
    assert pages("/tasks/status", "statuses") == [{"taskId": id, "status": queue.status(id)} for id in ids]
