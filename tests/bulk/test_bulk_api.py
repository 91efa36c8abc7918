"""One request about many workflows (api §1.3)."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.runs.models import Run
from tests.builders import simple


@pytest.fixture
def some(api):
    """Return a function that starts `count` workflows, each waiting for one task, and returns their ids."""
    api.put("/metadata/taskdefs", {"name": "pay", "retryCount": 0})
    api.define(simple("pay"))
    return lambda count: [api.start() for _ in range(count)]


def statuses(ids):
    found = dict(Run.objects.filter(pk__in=ids).values_list("id", "status"))
    return [found.get(id) for id in ids]


ACTS = {
    ("PUT", "/pause"): "PAUSED",
    ("POST", "/terminate?reason=enough"): "TERMINATED",
    ("DELETE", "/remove?archiveWorkflow=False"): None,
    ("POST", "/delete?archiveWorkflow=false"): None,
    ("DELETE", "/terminate-remove?reason=enough"): None,
}


@pytest.mark.parametrize(("method", "address"), ACTS)
def test_each_is_handled_and_answered_by_itself(api, some, method, address):
    one, two = some(2)
    done = some(1)[0] if "remove" not in address and "delete" not in address else "nothing"
    if done != "nothing":
        api.delete(f"/workflow/{done}/remove?archiveWorkflow=false")

    reply = api.send(method, f"/workflow/bulk{address}", [one, done, two, one])

    assert reply.status_code == 200
    assert reply.json()["bulkSuccessfulResults"] == [one, two]
    assert reply.json()["bulkErrorResults"] == {done: f"No such workflow found by id: {done}"}
    assert statuses([one, two]) == [ACTS[method, address]] * 2


def test_paused_workflows_are_resumed(api, some):
    ids = some(2)
    api.put("/workflow/bulk/pause", ids[:1])

    reply = api.put("/workflow/bulk/resume", ids)

    assert reply.json()["bulkSuccessfulResults"] == ids[:1]
    assert "RUNNING" in reply.json()["bulkErrorResults"][ids[1]]


def test_failed_workflows_are_retried(api, some):
    failed, running = some(2)
    task = next(task for task in api.poll("pay", count=2) if task["workflowInstanceId"] == failed)
    api.report(task, "FAILED")

    reply = api.post("/workflow/bulk/retry", [failed, running])

    assert reply.json()["bulkSuccessfulResults"] == [failed]
    assert list(reply.json()["bulkErrorResults"]) == [running]
    assert statuses([failed]) == ["RUNNING"]


def test_ended_workflows_are_restarted(api, some):
    ended, running = some(2)
    task = next(task for task in api.poll("pay", count=2) if task["workflowInstanceId"] == ended)
    api.report(task)
    api.define(simple("ship"), version=2)

    reply = api.post("/workflow/bulk/restart?useLatestDefinitions=true", [ended, running])

    assert reply.json()["bulkSuccessfulResults"] == [ended]
    assert list(reply.json()["bulkErrorResults"]) == [running]
    assert Run.objects.get(pk=ended).version == 2


def test_a_failure_workflow_is_started_on_request(api):
    api.define(simple("clean"), name="undo")
    api.define(simple("pay"), failureWorkflow="undo")
    ids = [api.start(), api.start()]

    api.post("/workflow/bulk/terminate?triggerFailureWorkflow=true", ids)

    assert Run.objects.filter(name="undo").count() == 2


def test_open_workflows_are_not_archived(api, some):
    [one] = some(1)

    reply = api.send("DELETE", "/workflow/bulk/remove", [one])

    assert (reply.json()["bulkSuccessfulResults"], list(reply.json()["bulkErrorResults"])) == ([], [one])
    assert statuses([one]) == ["RUNNING"]


def test_workflows_are_found_by_their_ids(api, some):
    one, two = some(2)

    whole = api.post("/workflow/bulk/search", [two, "nothing", one]).json()
    bare = api.post("/workflow/bulk/search?includeTasks=false", [one]).json()

    assert [run["workflowId"] for run in whole["bulkSuccessfulResults"]] == [two, one]
    assert list(whole["bulkErrorResults"]) == ["nothing"]
    assert len(whole["bulkSuccessfulResults"][0]["tasks"]) == 1
    assert bare["bulkSuccessfulResults"][0]["tasks"] == []
    assert bare["bulkSuccessfulResults"][0]["updatedTime"] > 0


ADDRESSES = [
    ("PUT", "pause"), ("PUT", "resume"), ("POST", "retry"), ("POST", "terminate"), ("DELETE", "remove"),
    ("POST", "delete"), ("DELETE", "terminate-remove"), ("POST", "search"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "name"), ADDRESSES)
@pytest.mark.parametrize("body", [[], ["x"] * 1001, [1], {}, None, "x", [None]], ids=lambda body: str(body)[:10])
def test_a_list_of_one_to_a_thousand_ids_is_needed(api, method, name, body):
    reply = api.send(method, f"/workflow/bulk/{name}", body)

    assert reply.status_code == 400


@pytest.mark.parametrize(("method", "name"), ADDRESSES)
def test_ids_may_be_anything(api, method, name):
    ids = ["", "a\0b", "x" * 5000, "é\u2028", "../.."]

    reply = api.send(method, f"/workflow/bulk/{name}", ids)

    assert reply.status_code == 200
    assert reply.json()["bulkSuccessfulResults"] == []
    assert set(reply.json()["bulkErrorResults"]) == {id.replace("\0", "") for id in ids}


def test_the_actor_is_recorded_for_each_workflow(api, some):
    ids = some(2)

    api.post("/workflow/bulk/terminate?reason=enough", ids)

    kept = AuditEntry.objects.filter(action="terminate").values_list("object_id", "reason")
    assert sorted(kept) == sorted((id, "enough") for id in ids)
