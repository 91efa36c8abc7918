"""Start and fetch workflows (api §1.2)."""

import pytest

from conductor_app.processes import sweeps
from tests.builders import set_variable, simple, step_of


@pytest.fixture
def defined(api, clock):
    """Register one workflow definition with one task."""
    api.define(simple("pay", inputParameters={"total": "${workflow.input.total}"}), outputParameters={"a": 1})


def test_a_start_is_answered_with_the_bare_id(api, defined):
    reply = api.post("/workflow", {"name": "order"})

    assert (reply.status_code, reply["Content-Type"].split(";")[0]) == (200, "text/plain")
    assert api.workflow(reply.content.decode())["status"] == "RUNNING"


def test_a_start_by_name_takes_the_body_as_input(api, defined):
    reply = api.post("/workflow/order?version=1&correlationId=c1&priority=7", {"total": 5})

    workflow = api.workflow(reply.content.decode())
    assert (workflow["input"], workflow["correlationId"], workflow["priority"]) == ({"total": 5}, "c1", 7)


def test_a_start_is_scheduled_for_later(api, defined, clock):
    workflow = api.workflow(api.start(startAt=clock.now() + 60_000))

    assert (workflow["startTime"], workflow["tasks"]) == (clock.now() + 60_000, [])
    assert api.post("/workflow", {"name": "order", "startAt": 10**30}).status_code == 400


def test_a_workflow_has_every_field_that_clients_read(api, defined, clock):
    workflow_id = api.start(input={"total": 5}, taskToDomain={"*": "NO_DOMAIN"})

    workflow = api.workflow(workflow_id)

    now = clock.now()
    assert (workflow["createTime"], workflow["startTime"], workflow["endTime"]) == (now, now, 0)
    assert (workflow["workflowName"], workflow["workflowVersion"], workflow["priority"]) == ("order", 1, 0)
    assert (workflow["input"], workflow["output"], workflow["variables"]) == ({"total": 5}, {}, {})
    assert (workflow["failedReferenceTaskNames"], workflow["failedTaskNames"], workflow["history"]) == ([], [], [])
    assert (workflow["lastRetriedTime"], workflow["rateLimited"]) == (0, False)
    assert workflow["taskToDomain"] == {"*": "NO_DOMAIN"}
    assert workflow["workflowDefinition"]["tasks"][0]["startDelay"] == 0
    assert (workflow["ownerApp"], workflow["tasks"][0]["executionMetadata"]["additionalContext"]) == ("", {})
    assert not {"parentWorkflowId", "correlationId", "reasonForIncompletion"} & workflow.keys()


DEFAULT = {
    "retryCount": 3,
    "responseTimeoutSeconds": 3600,
    "retryLogic": "FIXED",
    "retryDelaySeconds": 60,
    "timeoutPolicy": "TIME_OUT_WF",
    "rateLimitFrequencyInSeconds": 1,
}
BUILT_IN = {**DEFAULT, "retryCount": 0, "responseTimeoutSeconds": 0}


def test_a_task_without_a_task_definition_shows_the_default_one_everywhere(api):
    inner = step_of("NOOP", "inner")
    choice = {"evaluatorType": "value-param", "expression": "x", "inputParameters": {"x": "a"}}
    api.define(step_of("SWITCH", "s", decisionCases={"a": [inner]}, **choice), simple("unknown"))

    workflow = api.workflow(api.start())

    switch, noop, unknown = workflow["tasks"]
    for task, default in ((switch, BUILT_IN), (noop, BUILT_IN), (unknown, DEFAULT)):
        expected = {"name": task["workflowTask"]["name"], **default}
        assert task["taskDefinition"].items() >= expected.items()
        assert task["workflowTask"]["taskDefinition"] == task["taskDefinition"]
    defined = workflow["workflowDefinition"]["tasks"]
    assert defined[0]["decisionCases"]["a"][0]["taskDefinition"]["name"] == "inner"
    assert defined[1]["taskDefinition"] == api.poll("unknown")[0]["taskDefinition"]


def test_the_default_task_definition_is_not_part_of_the_definition_itself(api, defined):
    api.start()

    assert "taskDefinition" not in api.get("/metadata/workflow/order").json()["tasks"][0]


def test_a_task_is_executed_when_its_run_has_continued_after_it(api):
    """The original sets `executed` for completed and retried tasks, but not for the last failure."""
    api.put("/metadata/taskdefs", {"name": "ship", "retryCount": 0})
    api.define(simple("pay"), simple("ship"))
    workflow_id = api.start()
    api.report(api.poll("pay")[0])
    api.report(api.poll("ship")[0], "FAILED")

    assert [task["executed"] for task in api.workflow(workflow_id)["tasks"]] == [True, False]
    api.post(f"/workflow/{workflow_id}/retry")
    assert [task["executed"] for task in api.workflow(workflow_id)["tasks"]] == [True, True, False]


def test_only_tasks_with_a_task_definition_or_a_worker_show_a_rate_window(api):
    api.define(set_variable("v", a=1), simple("pay"))

    tasks = api.workflow(api.start())["tasks"]

    assert [task["rateLimitFrequencyInSeconds"] for task in tasks] == [0, 1]


def test_a_wait_shows_its_time_as_callback(api, clock):
    api.define(step_of("WAIT", "timed", inputParameters={"duration": "90 seconds"}), step_of("WAIT", "open"))
    workflow_id = api.start()

    [timed] = api.workflow(workflow_id)["tasks"]
    assert (timed["callbackAfterSeconds"], timed["pollCount"], timed["queueWaitTime"]) == (90, 0, 0)
    api.report(timed)
    timed, waiting = api.workflow(workflow_id)["tasks"]
    assert (timed["callbackAfterSeconds"], timed["pollCount"]) == (0, 0)
    assert waiting["callbackAfterSeconds"] == 2**31 - 1


def test_a_wait_and_a_sub_workflow_show_the_polls_of_the_original(api, clock):
    api.define(simple("pay"), name="child")
    sub_workflow = step_of("SUB_WORKFLOW", "s", subWorkflowParam={"name": "child"})
    api.define(step_of("WAIT", "w", inputParameters={"duration": "5 seconds"}), sub_workflow)
    workflow_id = api.start()
    clock.advance(seconds=5)
    sweeps.sweep_once()

    wait, child = api.workflow(workflow_id)["tasks"]

    assert [(task["pollCount"], task["callbackAfterSeconds"]) for task in (wait, child)] == [(1, 5), (1, 0)]
    assert [type(task["pollCount"]) for task in (wait, child)] == [int, int]


def test_tasks_are_omitted_on_request(api, defined):
    workflow_id = api.start()

    assert api.get(f"/workflow/{workflow_id}", includeTasks="False").json()["tasks"] == []
    assert len(api.get(f"/workflow/{workflow_id}", includeTasks="").json()["tasks"]) == 1


def test_the_status_contains_output_and_variables_on_request(api, defined):
    workflow_id = api.start(correlationId="c1")
    api.report(api.poll("pay")[0])

    plain = api.get(f"/workflow/{workflow_id}/status").json()
    more = api.get(f"/workflow/{workflow_id}/status", includeOutput="True", includeVariables="on").json()

    assert plain == {"workflowId": workflow_id, "correlationId": "c1", "status": "COMPLETED"}
    assert more == {**plain, "output": {"a": 1}, "variables": {}}


def test_tasks_are_paged_and_filtered_by_status(api):
    api.define(simple("pay"), simple("ship"), simple("bill"))
    workflow_id = api.start()
    for name in ("pay", "ship"):
        api.report(api.poll(name)[0])

    page = api.get(f"/workflow/{workflow_id}/tasks", start=1, count=1).json()
    done = api.get(f"/workflow/{workflow_id}/tasks", status="completed").json()

    assert (page["totalHits"], [task["taskType"] for task in page["results"]]) == (3, ["ship"])
    assert (done["totalHits"], [task["taskType"] for task in done["results"]]) == (2, ["pay", "ship"])


def test_workflows_are_found_by_correlation_id(api, defined):
    running, ended = api.start(correlationId="c1"), api.start(correlationId="c1")
    api.delete(f"/workflow/{ended}")

    one = api.get("/workflow/order/correlated/c1").json()
    both = api.get("/workflow/order/correlated/c1", includeClosed="true", includeTasks="true").json()
    many = api.post("/workflow/order/correlated?includeClosed=true", ["c1", "c2"]).json()

    assert [workflow["workflowId"] for workflow in one] == [running]
    assert {workflow["workflowId"] for workflow in both} == {running, ended}
    assert [len(workflow["tasks"]) for workflow in both] == [1, 1]
    assert (len(many["c1"]), many["c2"]) == (2, [])


def test_running_workflows_are_listed_by_id(api, defined, clock):
    first, second = api.start(), api.start()
    api.delete(f"/workflow/{second}")
    now = clock.now()

    assert api.get("/workflow/running/order").json() == [first]
    between = api.get("/workflow/running/order", startTime=now - 1, endTime=now + 1).json()
    assert sorted(between) == sorted([first, second])
    assert api.get("/workflow/running/order", version=2, startTime=now - 1, endTime=now + 1).json() == []


def test_an_inline_definition_is_used_without_saving(api):
    document = {"name": "once", "version": 3, "tasks": [simple("pay")], "failureWorkflow": "", "enforceSchema": False}

    workflow_id = api.start("once", workflowDef=document, idempotencyStrategy="FAIL")

    assert api.workflow(workflow_id)["workflowVersion"] == 3
    assert api.get("/metadata/workflow/once").status_code == 404


def test_numbers_of_any_length_are_returned_as_they_were_sent(api, defined):
    long = 12345678901234567890123456789

    workflow_id = api.start(input={"total": 1, "long": long})

    assert api.workflow(workflow_id)["input"]["long"] == long


KEYS = {"FAIL": 409, "RETURN_EXISTING": 200, "FAIL_ON_RUNNING": 409}


@pytest.mark.parametrize("strategy", KEYS)
def test_a_key_starts_one_workflow(api, defined, strategy):
    first = api.start(idempotencyKey="k1")

    reply = api.post("/workflow", {"name": "order", "idempotencyKey": "k1", "idempotencyStrategy": strategy})

    assert reply.status_code == KEYS[strategy]
    if strategy == "RETURN_EXISTING":
        assert reply.content.decode() == first


def test_a_strategy_without_a_key_is_ignored(api, defined):
    assert api.start(idempotencyStrategy="FAIL") != api.start(idempotencyStrategy="FAIL")


FAULTY = {
    "no name": ({}, "name", "Workflow name cannot be null or empty"),
    "a negative priority": ({"name": "order", "priority": -1}, "priority", "priority: -1 should be minimum 0"),
    "too high a priority": ({"name": "order", "priority": 100}, "priority", "priority: 100 should be maximum 99"),
    "an input that is a list": ({"name": "order", "input": []}, "input", "input must be an object"),
    "a faulty definition": (
        {"name": "x", "workflowDef": {"name": "x"}},
        "workflowDef.tasks",
        "WorkflowTask list cannot be empty",
    ),
    "a definition that is a text": ({"name": "x", "workflowDef": "x"}, "workflowDef", "The document must be an object"),
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_faulty_start_is_refused_with_its_complaint(api, defined, case):
    document, path, message = FAULTY[case]

    reply = api.post("/workflow", document)

    [error] = reply.json()["validationErrors"]
    assert reply.status_code == 400
    assert (error["path"], error["message"]) == (f"startWorkflow.startWorkflowRequest.{path}", message)


@pytest.mark.parametrize("document", [{"name": "order", "input": None}, {"name": " "}])
def test_a_null_input_and_a_blank_name_are_refused(api, defined, document):
    assert api.post("/workflow", document).status_code == 400


@pytest.mark.parametrize("document", [{"name": "nobody"}, {"name": "order", "version": 9}])
def test_a_start_of_an_unknown_definition_is_not_found(api, defined, document):
    assert api.post("/workflow", document).status_code == 404


@pytest.mark.parametrize("address", ["", "/status", "/tasks"])
def test_an_unknown_workflow_is_not_found(api, address):
    reply = api.get(f"/workflow/nobody{address}")

    assert reply.status_code == 404
    assert reply.json()["message"] == "No such workflow found by id: nobody"


def test_a_sub_workflow_shows_its_parent_and_is_shown_by_its_task(api):
    api.define(simple("pay"), name="child")
    api.define(step_of("SUB_WORKFLOW", "sub", subWorkflowParam={"name": "child"}))
    workflow_id = api.start()

    [task] = api.workflow(workflow_id)["tasks"]
    child = api.workflow(task["subWorkflowId"])

    assert (child["parentWorkflowId"], child["parentWorkflowTaskId"]) == (workflow_id, task["taskId"])
