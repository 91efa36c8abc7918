"""Workflows that are started and waited for (api §1.2a, §3.16)."""

import pytest

from conductor_app.runs.models import Run
from conductor_app.tasks.commands import waits as run_waits
from tests.builders import set_variable, simple, sub_workflow, wait

THINKS = set_variable("think", seen="${workflow.input.n}")


@pytest.fixture
def workflow_without_worker(api, clock) -> None:
    """Start a workflow that needs no worker."""
    api.define(THINKS, outputParameters={"twice": "${workflow.input.n}"})


def execute(api, query: str = "", name: str = "order", **fields):
    return api.post(f"/workflow/execute/{name}/1?{query}", fields)


def test_a_workflow_without_waits_is_returned_complete(api, workflow_without_worker):
    reply = execute(api, input={"n": 2}, correlationId="A-1", priority=7).json()

    assert (reply["status"], reply["targetWorkflowStatus"], reply["signalTimeout"]) == ("COMPLETED", "COMPLETED", False)
    assert (reply["responseType"], reply["workflowId"]) == ("TARGET_WORKFLOW", reply["targetWorkflowId"])
    assert (reply["input"], reply["output"], reply["variables"]) == ({"n": 2}, {"twice": 2}, {"seen": 2})
    assert (reply["correlationId"], reply["priority"]) == ("A-1", 7)
    assert [task["referenceTaskName"] for task in reply["tasks"]] == ["think"]
    assert reply["requestId"]


def test_a_workflow_that_waits_for_input_is_returned_at_once(api, clock):
    api.define(wait("approve", of="${workflow.input.n}"))

    reply = execute(api, "waitForSeconds=60&returnStrategy=BLOCKING_TASK", input={"n": 2}).json()

    assert (reply["responseType"], reply["referenceTaskName"], reply["taskType"]) == (
        "BLOCKING_TASK",
        "approve",
        "WAIT",
    )
    assert (reply["status"], reply["targetWorkflowStatus"], reply["input"]) == ("IN_PROGRESS", "RUNNING", {"of": 2})
    assert reply["workflowType"] == "order"


def test_a_wait_in_a_child_blocks_its_parent(api, clock):
    api.define(wait("approve"), name="child")
    api.define(sub_workflow("inner", "child", version=1))

    reply = execute(api, "waitForSeconds=60&returnStrategy=BLOCKING_WORKFLOW").json()

    child = api.workflow(reply["targetWorkflowId"])["tasks"][0]["subWorkflowId"]
    assert (reply["workflowId"], reply["status"]) == (child, "RUNNING")
    assert [task["referenceTaskName"] for task in reply["tasks"]] == ["approve"]


def test_a_timed_wait_does_not_block(api, clock, monkeypatch):
    monkeypatch.setattr(run_waits, "MAX_WAIT_SECONDS", 0)
    api.define(wait("rest", duration="10 s"))

    reply = execute(api, "waitForSeconds=60&returnStrategy=BLOCKING_TASK").json()

    # The run has no task to return: the reply is the workflow instead of an error.
    assert (reply["responseType"], reply["signalTimeout"], reply["status"]) == ("TARGET_WORKFLOW", True, "RUNNING")


def test_the_end_of_a_named_task_is_waited_for(api, clock):
    api.define(THINKS, simple("ship"))

    reply = execute(api, "waitUntilTaskRef=other,think&waitForSeconds=60&returnStrategy=BLOCKING_TASK_INPUT").json()

    assert (reply["responseType"], reply["referenceTaskName"], reply["status"]) == (
        "BLOCKING_TASK_INPUT",
        "think",
        "COMPLETED",
    )


@pytest.mark.parametrize(
    "query", ["requestId=None&waitUntilTaskRef=None&returnStrategy=None", "requestId=&waitUntilTaskRef="]
)
def test_empty_parameters_are_ignored(api, workflow_without_worker, query):
    first, second = execute(api, query).json(), execute(api, query).json()

    assert first["workflowId"] != second["workflowId"]
    assert first["requestId"] not in ("", "None", second["requestId"])


def test_a_repeated_request_starts_no_second_run(api, workflow_without_worker):
    first, second = (execute(api, "requestId=r-1", input={"n": n}).json() for n in (1, 2))

    assert second["workflowId"] == first["workflowId"]
    assert (second["requestId"], second["input"]) == ("r-1", {"n": 1})
    assert Run.objects.count() == 1


def test_a_request_of_the_same_name_is_another_for_another_workflow(api, workflow_without_worker):
    api.define(THINKS, name="other")

    first, second = execute(api, "requestId=r-1").json(), execute(api, "requestId=r-1", name="other").json()

    assert first["workflowId"] != second["workflowId"]


FAULTY = {
    "strategy": "returnStrategy=MATCH_ALL",
    "seconds": "waitForSeconds=soon",
    "request": f"requestId={'r' * 300}",
}


@pytest.mark.parametrize("case", FAULTY)
def test_an_invalid_request_starts_nothing(api, workflow_without_worker, case):
    reply = execute(api, FAULTY[case])

    assert reply.status_code == 400
    assert Run.objects.count() == 0


def test_a_version_of_zero_is_the_newest_and_an_unknown_one_is_not_found(api, workflow_without_worker):
    newest, unknown, none = (api.post(f"/workflow/execute/order/{version}", {}) for version in (0, 9, "one"))

    assert (newest.status_code, unknown.status_code, none.status_code) == (200, 404, 400)


def test_a_definition_in_place_is_executed(api, clock):
    document = {"name": "one_off", "version": 1, "tasks": [THINKS]}

    reply = execute(api, name="one_off", workflowDef=document).json()

    assert reply["status"] == "COMPLETED"


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_workflow_as_an_api_answers_with_its_output(api, workflow_without_worker, method):
    body = {"n": 3} if method == "POST" else None
    reply = api.send(method, "/workflow/execute/order?version=1", body, waitForSeconds="20", requestId="None")

    assert reply.json() == {"twice": 3 if method == "POST" else None}
    assert (reply["X-Workflow-Status"], reply["X-Signal-Timeout"]) == ("COMPLETED", "false")


def test_waiting_requests_leave_threads_for_others(api, clock, settings):
    settings.CONDUCTOR_MAX_WAITING_THREADS = 0
    api.define(simple("ship"))

    reply = execute(api, "waitForSeconds=600").json()

    assert (reply["status"], reply["signalTimeout"]) == ("RUNNING", True)
