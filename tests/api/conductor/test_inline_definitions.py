"""Workflow definitions that are given in place, over the wire (execution §8.10)."""

import pytest

from tests.api.step_documents import simple, step

CHILD = {
    "name": "child",
    "tasks": [simple("pick", inputParameters={"q": "${workflow.input.q}", "v": "${workflow.variables.v}"})],
    "variables": {"v": "the child's variable"},
    "outputParameters": {"q": "${workflow.input.q}", "x": "${pick.output.x}"},
}
JOIN = step("JOIN", "joined", joinOn=[])


def given(ref="s", **fields):
    """Return a SUB_WORKFLOW step with an inline definition."""
    param = {"name": "child", "version": 1, "workflowDefinition": CHILD}
    return step("SUB_WORKFLOW", ref, subWorkflowParam=param, inputParameters={"q": "the child's"}, **fields)


def fan(tasks):
    names = {"dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "inputs"}
    return [step("FORK_JOIN_DYNAMIC", "fan", inputParameters={"tasks": tasks, "inputs": {}}, **names), JOIN]


PLACES = {
    "a step": [given()],
    "a loop": [step("DO_WHILE", "l", loopCondition="false", loopOver=[given()])],
    "a dynamic fork": fan([given()]),
    "a dynamic fork's loop": fan([step("DO_WHILE", "l", loopCondition="false", loopOver=[given()])]),
    "the list that a run is started with": fan("${workflow.input.tasks}"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_child_reads_its_own_input_variables_and_tasks(api, place):
    api.define(*PLACES[place], variables={"v": "the parent's variable"})
    run = api.start(input={"q": "the parent's", "tasks": [given()]})

    [task] = api.poll("pick")
    assert task["inputData"] == {"q": "the child's", "v": "the child's variable"}
    assert api.report(task, outputData={"x": 5}).status_code == 200

    child = api.workflow(task["workflowInstanceId"])
    assert (child["status"], child["output"]) == ("COMPLETED", {"q": "the child's", "x": 5})
    assert child["input"] == {"q": "the child's", "_systemMetadata": {"dynamic": True}}
    assert api.workflow(run)["status"] == "COMPLETED"


def test_the_input_of_the_task_has_the_keys_of_the_original(api):
    api.define(given())
    [task] = api.workflow(api.start())["tasks"]

    assert task["inputData"] == {
        "subWorkflowName": "child",
        "subWorkflowVersion": None,
        "subWorkflowDefinition": CHILD,
        "subWorkflowTaskToDomain": None,
        "priority": None,
        "idempotencyKey": None,
        "idempotencyStrategy": None,
        "workflowInput": {"q": "the child's"},
    }


def test_a_child_found_by_name_has_no_inline_marker(api):
    api.define(simple("pick"), name="child")
    named = step("SUB_WORKFLOW", "s", subWorkflowParam={"name": "child"}, inputParameters={"q": 1})
    api.define(named)
    [task] = api.workflow(api.start())["tasks"]

    assert (task["inputData"]["subWorkflowVersion"], task["inputData"]["subWorkflowDefinition"]) == (1, None)
    assert api.workflow(task["subWorkflowId"])["input"] == {"q": 1}


def test_a_test_of_a_workflow_plays_the_child_as_a_run_would(api):
    document = {"name": "order", "version": 1, "tasks": [given()], "schemaVersion": 2}
    picked = {"pick": [{"status": "COMPLETED", "output": {"x": 5}}]}
    asked = {"name": "order", "workflowDef": document, "input": {"q": "the parent's"}}

    reply = api.post("/workflow/test", {**asked, "subWorkflowTestRequest": {"s": {"taskRefToMockOutput": picked}}})

    output = reply.json()["output"]
    assert (reply.status_code, output["q"], output["x"]) == (200, "the child's", 5)


@pytest.mark.parametrize("tasks", ["nope", [{"type": "SIMPLE"}], [simple("a", startDelay="x")]])
def test_an_invalid_list_for_a_dynamic_fork_fails_the_run_without_a_task(api, tasks):
    api.define(*fan("${workflow.input.tasks}"))

    run = api.workflow(api.start(input={"tasks": tasks}))

    assert (run["status"], run["tasks"]) == ("FAILED", [])
    assert run["reasonForIncompletion"].startswith("Input 'tasks' is invalid. Cannot deserialize a list of ")
