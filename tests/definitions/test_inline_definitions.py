"""Workflow definitions that are given in place, over the wire (execution §8.10)."""

import pytest

from tests.builders import join, simple, step_of, sub_workflow

CHILD = {
    "name": "child",
    "tasks": [simple("pick", inputParameters={"q": "${workflow.input.q}", "v": "${workflow.variables.v}"})],
    "variables": {"v": "the child's variable"},
    "outputParameters": {"q": "${workflow.input.q}", "x": "${pick.output.x}"},
}
JOIN = join("joined", [])


def inline_child(ref="s", **fields):
    """Return a SUB_WORKFLOW step with an inline definition."""
    param = {"name": "child", "version": 1, "workflowDefinition": CHILD}
    return step_of("SUB_WORKFLOW", ref, subWorkflowParam=param, inputParameters={"q": "the child's"}, **fields)


def fan(tasks):
    names = {"dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "inputs"}
    return [step_of("FORK_JOIN_DYNAMIC", "fan", inputParameters={"tasks": tasks, "inputs": {}}, **names), JOIN]


PLACES = {
    "a step": [inline_child()],
    "a loop": [step_of("DO_WHILE", "l", loopCondition="false", loopOver=[inline_child()])],
    "a dynamic fork": fan([inline_child()]),
    "a dynamic fork's loop": fan([step_of("DO_WHILE", "l", loopCondition="false", loopOver=[inline_child()])]),
    "the list that a run is started with": fan("${workflow.input.tasks}"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_child_reads_its_own_input_variables_and_tasks(api, place):
    api.define(*PLACES[place], variables={"v": "the parent's variable"})
    run = api.start(input={"q": "the parent's", "tasks": [inline_child()]})

    [task] = api.poll("pick")
    assert task["inputData"] == {"q": "the child's", "v": "the child's variable"}
    assert api.report(task, outputData={"x": 5}).status_code == 200

    child = api.workflow(task["workflowInstanceId"])
    assert (child["status"], child["output"]) == ("COMPLETED", {"q": "the child's", "x": 5})
    assert child["input"] == {"q": "the child's", "_systemMetadata": {"dynamic": True}}
    assert api.workflow(run)["status"] == "COMPLETED"


def child_named_by_data(child):
    return step_of("SUB_WORKFLOW", "s", subWorkflowParam={"name": "c", "workflowDefinition": {"name": "c", **child}})


def started(child):
    request = {"name": "c", "workflowDef": {"name": "c", **child}}
    return step_of("START_WORKFLOW", "s", inputParameters={"startWorkflow": request})


FORMS = {
    "a step": lambda child: [child_named_by_data(child)],
    "a loop": lambda child: [step_of("DO_WHILE", "l", loopCondition="false", loopOver=[child_named_by_data(child)])],
    "a dynamic fork": lambda child: fan([child_named_by_data(child)]),
    "a child": lambda child: [child_named_by_data({"tasks": [child_named_by_data(child)]})],
    "a started workflow": lambda child: [started(child)],
}
UNCHECKED = {
    "an unknown reference": [simple("pick", inputParameters={"q": "${absent.output.q}", "x": "${nothing}"})],
    "an unreadable expression": [simple("pick", inputParameters={"q": "${workflow.input[.q}"})],
    "two underscores in a reference": [simple("pick", taskReferenceName="a__1", inputParameters={"q": None})],
    "a task definition with odd limits": [simple("pick", taskDefinition={"timeoutSeconds": 5, "retryCount": -2})],
    "a delay below 0": [simple("pick", startDelay=-3)],
}


EXPRESSIONS = {"an unknown reference", "an unreadable expression"}
"""Those of a started workflow are the parent's, and checked as such."""
REGISTERED = [
    (form, case) for form in FORMS for case in UNCHECKED if form != "a started workflow" or case not in EXPRESSIONS
]


@pytest.mark.parametrize(("form", "case"), REGISTERED)
def test_a_definition_in_place_that_is_registered_runs(api, form, case):
    api.define(*FORMS[form]({"tasks": UNCHECKED[case]}))
    api.start()

    [task] = api.poll("pick")
    assert task["inputData"].get("q") is None
    assert api.report(task).status_code == 200
    assert api.workflow(task["workflowInstanceId"])["status"] == "COMPLETED"


def test_a_step_in_place_that_lacks_a_field_of_its_type_fails_with_a_reason(api):
    api.define(child_named_by_data({"tasks": [step_of("SWITCH", "choice")]}))
    [task] = api.workflow(api.start())["tasks"]

    assert task["status"] == "FAILED"
    [inner] = api.workflow(task["subWorkflowId"])["tasks"]
    assert "evaluatorType" in inner["reasonForIncompletion"] or "expression" in inner["reasonForIncompletion"]


IMPOSSIBLE = {
    "a reference that is used twice": ([simple("pick"), simple("pick")], "pick should be unique across tasks"),
    "a step without a reference": ([{"name": "pick"}], "taskReferenceName name cannot be empty or null"),
    "no steps": ([], "WorkflowTask list cannot be empty"),
    "a text for steps": ("pick", "must be a list"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_a_definition_in_place_that_cannot_be_executed_is_refused_when_its_parent_is_registered(api, form, case):
    tasks, problem = IMPOSSIBLE[case]
    document = {"name": "order", "version": 1, "schemaVersion": 2, "tasks": FORMS[form]({"tasks": tasks})}

    reply = api.post("/metadata/workflow", document)

    assert reply.status_code == 400
    [error, *_others] = reply.json()["validationErrors"]
    assert (problem in error["message"], "workflowDef" in error["path"]) == (True, True)


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_a_definition_that_data_gives_fails_its_step_with_the_same_text(api, case):
    tasks, problem = IMPOSSIBLE[case]
    api.define(
        step_of("SUB_WORKFLOW", "s", subWorkflowParam={"name": "c", "workflowDefinition": "${workflow.input.it}"})
    )

    [task] = api.workflow(api.start(input={"it": {"name": "c", "tasks": tasks}}))["tasks"]

    assert (task["status"], problem in task["reasonForIncompletion"]) == ("FAILED_WITH_TERMINAL_ERROR", True)


def test_a_request_with_expressions_is_checked_when_it_is_sent(api):
    request = {"name": "c", "workflowDef": {"name": "c", "tasks": "${workflow.input.tasks}"}}
    api.define(step_of("START_WORKFLOW", "s", inputParameters={"startWorkflow": request}))

    assert api.workflow(api.start(input={"tasks": [simple("pick")]}))["status"] == "COMPLETED"


def test_the_input_of_the_task_has_the_keys_of_the_original(api):
    api.define(inline_child())
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
    named = sub_workflow("s", "child", inputParameters={"q": 1})
    api.define(named)
    [task] = api.workflow(api.start())["tasks"]

    assert (task["inputData"]["subWorkflowVersion"], task["inputData"]["subWorkflowDefinition"]) == (1, None)
    assert api.workflow(task["subWorkflowId"])["input"] == {"q": 1}


def test_a_test_of_a_workflow_plays_the_child_as_a_run_would(api):
    document = {"name": "order", "version": 1, "tasks": [inline_child()], "schemaVersion": 2}
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


@pytest.mark.parametrize(("name", "code"), [("", 200), (" ", 200), (None, 400)])
def test_a_start_without_a_name_beside_a_definition_has_the_name_of_the_definition(api, name, code):
    reply = api.post("/workflow", {"name": name, "workflowDef": CHILD})

    assert reply.status_code == code
    if code == 200:
        assert api.workflow(reply.content.decode())["workflowName"] == "child"


def test_a_start_without_any_name_is_refused(api):
    reply = api.post("/workflow", {"name": "", "workflowDef": {**CHILD, "name": ""}})

    assert (reply.status_code, reply.json()["message"]) == (400, "Workflow name cannot be blank.")
