"""Operators' actions on workflows and the states that allow them (api §1.2, execution §7.2)."""

import pytest

from tests.builders import simple


@pytest.fixture
def in_status(api, clock):
    """Return a function that starts a workflow and brings it to the given status."""

    def bring(status):
        api.put("/metadata/taskdefs", {"name": "pay", "retryCount": 0})
        api.define(simple("pay"))
        workflow_id = api.start()
        if status == "PAUSED":
            api.put(f"/workflow/{workflow_id}/pause")
        elif status == "TERMINATED":
            api.delete(f"/workflow/{workflow_id}?reason=enough")
        elif status in ("COMPLETED", "FAILED"):
            api.report(api.poll("pay")[0], status)
        assert api.workflow(workflow_id)["status"] == status
        return workflow_id

    return bring


CODES = {
    ("PUT", "/pause"): {"RUNNING": 200, "PAUSED": 200, "COMPLETED": 409, "FAILED": 409, "TERMINATED": 409},
    ("PUT", "/resume"): {"RUNNING": 409, "PAUSED": 200, "COMPLETED": 409, "FAILED": 409, "TERMINATED": 409},
    ("DELETE", ""): {"RUNNING": 200, "PAUSED": 200, "COMPLETED": 409, "FAILED": 200, "TERMINATED": 200},
    ("POST", "/retry"): {"RUNNING": 404, "PAUSED": 404, "COMPLETED": 409, "FAILED": 204, "TERMINATED": 204},
    ("POST", "/rerun"): {"RUNNING": 409, "PAUSED": 409, "COMPLETED": 200, "FAILED": 200, "TERMINATED": 200},
    ("POST", "/restart"): {"RUNNING": 409, "PAUSED": 409, "COMPLETED": 204, "FAILED": 204, "TERMINATED": 204},
    ("POST", "/restart?useLatestDefinitions=true"): {"RUNNING": 409, "COMPLETED": 204, "FAILED": 204},
    ("DELETE", "/remove"): {"RUNNING": 400, "PAUSED": 400, "COMPLETED": 200, "FAILED": 200, "TERMINATED": 200},
    ("DELETE", "/remove?archiveWorkflow=false"): {"RUNNING": 200, "PAUSED": 200, "COMPLETED": 200},
}
TABLE = [(*operation, status, code) for operation, codes in CODES.items() for status, code in codes.items()]


@pytest.mark.parametrize(("method", "address", "status", "code"), TABLE)
def test_an_operation_is_allowed_or_refused_by_status(api, in_status, method, address, status, code):
    workflow_id = in_status(status)

    reply = api.send(method, f"/workflow/{workflow_id}{address}", {})

    assert reply.status_code == code
    if code < 300 and address == "/rerun":
        assert (reply.content.decode(), reply.headers["Content-Type"]) == (workflow_id, "text/plain;charset=UTF-8")
    elif code < 300:
        assert (reply.content, reply.has_header("Content-Type")) == (b"", False)
    else:
        assert (reply.json()["status"], bool(reply.json()["message"])) == (code, True)


@pytest.mark.parametrize(("method", "address"), [*CODES, ("PUT", "/decide")])
def test_an_action_on_an_unknown_workflow_is_not_found(api, method, address):
    path = "/workflow/decide/nobody" if address == "/decide" else f"/workflow/nobody{address}"

    assert api.send(method, path, {}).status_code == 404


def test_a_paused_workflow_schedules_no_tasks_until_it_is_resumed(api, clock):
    api.define(simple("pay"), simple("ship"))
    workflow_id = api.start()
    api.put(f"/workflow/{workflow_id}/pause", {})
    api.report(api.poll("pay")[0])

    assert api.poll("ship") == []
    api.put(f"/workflow/{workflow_id}/resume", b"")
    assert len(api.poll("ship")) == 1


def test_a_terminated_workflow_has_its_reason(api, in_status):
    workflow = api.workflow(in_status("TERMINATED"))

    assert (workflow["reasonForIncompletion"], workflow["tasks"][0]["status"]) == ("enough", "CANCELED")


def test_a_retried_workflow_runs_again(api, in_status):
    workflow_id = in_status("FAILED")

    api.post(f"/workflow/{workflow_id}/retry?resumeSubworkflowTasks=False")

    assert api.workflow(workflow_id)["status"] == "RUNNING"
    assert [task["status"] for task in api.workflow(workflow_id)["tasks"]] == ["FAILED", "SCHEDULED"]


def test_a_workflow_is_rerun_from_one_of_its_tasks(api, in_status):
    workflow_id = in_status("COMPLETED")
    task_id = api.workflow(workflow_id)["tasks"][0]["taskId"]
    asked = {"reRunFromTaskId": task_id, "taskInput": {"n": 1}, "workflowInput": {"m": 2}, "correlationId": "mine"}

    reply = api.post(f"/workflow/{workflow_id}/rerun", {**asked, "reRunFromWorkflowId": "is ignored"})

    workflow = api.workflow(workflow_id)
    assert (reply.status_code, workflow["status"]) == (200, "RUNNING")
    assert (workflow["input"], workflow["correlationId"]) == ({"m": 2}, "mine")
    [task] = workflow["tasks"]
    assert (task["status"], task["inputData"], task["retryCount"]) == ("SCHEDULED", {"n": 1}, 0)


@pytest.mark.parametrize(
    "asked",
    [{"reRunFromTaskId": "nobody"}, {"reRunFromTaskId": "\0"}, {"taskInput": []}, {"workflowInput": 1}, [], None],
)
def test_a_rerun_that_makes_no_sense_is_refused(api, in_status, asked):
    workflow_id = in_status("FAILED")

    assert api.post(f"/workflow/{workflow_id}/rerun", asked).status_code == 400
    assert api.workflow(workflow_id)["status"] == "FAILED"


def test_a_workflow_that_is_not_restartable_is_restarted_only_if_it_ended_badly(api):
    api.put("/metadata/taskdefs", {"name": "pay", "retryCount": 0})
    api.define(simple("pay"), restartable=False)
    workflow_id = api.start()
    api.report(api.poll("pay")[0], "FAILED")

    assert api.post(f"/workflow/{workflow_id}/restart").status_code == 204
    api.report(api.poll("pay")[0])
    assert api.post(f"/workflow/{workflow_id}/restart").status_code == 404


def test_deciding_again_changes_nothing(api, in_status):
    workflow_id = in_status("RUNNING")

    reply = api.put(f"/workflow/decide/{workflow_id}")

    assert (reply.status_code, len(api.workflow(workflow_id)["tasks"])) == (200, 1)


def test_a_deleted_workflow_is_not_found(api, in_status):
    workflow_id = in_status("COMPLETED")

    api.delete(f"/workflow/{workflow_id}/remove")

    assert api.get(f"/workflow/{workflow_id}").status_code == 404
