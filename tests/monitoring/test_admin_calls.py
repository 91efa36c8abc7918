"""Administrative endpoints (api §1.7, §1.8)."""

import pytest

from conductor_app.access.models import AuditEntry
from tests.builders import simple, wait


@pytest.fixture
def running(api):
    api.define(simple("pay"), simple("ship"))
    return api.start()


def test_open_tasks_of_a_name_are_shown_in_pages(api, running):
    others = [api.start() for _ in range(2)]

    first = api.get("/admin/task/pay", count=2).json()
    rest = api.get("/admin/task/pay", start=2).json()

    assert [task["workflowInstanceId"] for task in (*first, *rest)] == [running, *others]
    assert first[0]["status"] == "SCHEDULED"
    assert api.get("/admin/task/ship").json() == []
    assert api.get("/admin/task/pay", start=-5, count=-5).json() == []


def test_an_ended_task_is_not_open(api, running):
    api.report(api.poll("pay")[0])

    assert api.get("/admin/task/pay").json() == []


def test_pending_tasks_are_counted(api, running):
    api.start()

    assert api.post("/tasks/queue/requeue/pay").content == b"2"
    assert api.post("/tasks/queue/requeue/nothing").content == b"0"
    assert AuditEntry.objects.filter(action="requeue", object_id="pay").exists()


@pytest.mark.parametrize(
    ("address", "answer"),
    [("sweep/requeue", "true.{id}"), ("consistency/verifyAndRepair", "false")],
)
def test_a_workflow_is_decided(api, running, address, answer):
    reply = api.post(f"/admin/{address}/{running}")

    assert (reply.status_code, reply.content.decode()) == (200, answer.format(id=running))
    assert reply["Content-Type"].startswith("text/plain")
    assert api.post(f"/admin/{address}/nobody").status_code == 404
    assert AuditEntry.objects.filter(object_id=running).exclude(action="start").count() == 1


def test_deciding_is_noted(api, running):
    api.put(f"/workflow/decide/{running}")

    assert AuditEntry.objects.get(object_id=running, action="decide").actor == "anonymous"


def test_queues_are_visible_to_administrators(api, running):
    assert api.get("/admin/queues", verbose="true").json() == {"conductor": {"pay": 1}}


def test_the_event_queues_have_names_and_are_empty(api):
    queues = api.get("/queue/").json()

    assert sorted(queues) == ["COMPLETED", "FAILED"]
    assert api.get("/queue/size").json() == dict.fromkeys(queues.values(), 0)


def test_a_message_ends_the_task_that_waits_for_it(api):
    api.define(wait("one"), wait("two"), simple("three"))
    workflow_id = api.start()

    by_name = api.post(f"/queue/update/{workflow_id}/one/COMPLETED", {"n": 1})
    task_id = api.workflow(workflow_id)["tasks"][1]["taskId"]
    by_id = api.post(f"/queue/update/{workflow_id}/task/{task_id}/COMPLETED", {"n": 2})

    assert (by_name.status_code, by_name.content, by_id.status_code) == (200, b"", 200)
    assert [(t["status"], t["outputData"]) for t in api.workflow(workflow_id)["tasks"]] == [
        ("COMPLETED", {"n": 1}), ("COMPLETED", {"n": 2}), ("SCHEDULED", {}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("{id}/pay/SKIPPED", 400),
        ("{id}/pay/IN_PROGRESS", 400),
        ("nobody/pay/COMPLETED", 404),
        ("{id}/none/FAILED", 200),
    ],
)
def test_paths_of_external_message_queues_return_empty_results(api, running, address, code):
    assert api.post(f"/queue/update/{address.format(id=running)}", {}).status_code == code
