"""Validation errors of workflow definitions, in Conductor's wording (api §3.3, §3.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.document.fields import STEP_FIELDS, WORKFLOW_DEFINITION, coerce_workflow, normalize_workflow
from conductor_app.core.validation.checks import workflow_errors
from tests.builders import join, simple, step_of, wait


def workflow(*tasks, **fields):
    return {"name": "order", "tasks": list(tasks), **fields}


JOIN = join("join", ["a"])

INVALID_WORKFLOWS = {
    "no name": ({"tasks": [simple("a")]}, "name", "WorkflowDef name cannot be null or empty"),
    "no tasks": ({"name": "order"}, "tasks", "WorkflowTask list cannot be empty"),
    "an old schema": (
        workflow(simple("a"), schemaVersion=1),
        "schemaVersion",
        "workflowDef schemaVersion: 2 is only supported",
    ),
    "a task without a name": (
        workflow({"taskReferenceName": "a"}),
        "tasks[0].name",
        "WorkflowTask name cannot be empty or null",
    ),
    "a task without a reference": (
        workflow({"name": "a"}),
        "tasks[0].taskReferenceName",
        "WorkflowTask taskReferenceName name cannot be empty or null",
    ),
    "a duplicate reference in another branch": (
        workflow(step_of("FORK_JOIN", "f", forkTasks=[[simple("a")], [simple("a")]]), JOIN),
        "",
        "taskReferenceName: a should be unique across tasks for a given workflowDefinition: order",
    ),
    "a negative delay": (
        workflow(simple("a", startDelay=-1)),
        "tasks[0].startDelay",
        "must be greater than or equal to 0",
    ),
    "an unknown task in an expression": (
        workflow(simple("a", inputParameters={"total": "${pay.output.total}"})),
        "",
        "taskReferenceName: pay for given task: a input value: total of input parameter: ${pay.output.total} is not "
        "defined in workflow definition.",
    ),
    "an error inside a switch": (
        workflow(
            step_of("SWITCH", "s", evaluatorType="value-param", expression="x", decisionCases={"y": [{"name": "a"}]})
        ),
        "tasks[0].decisionCases[y][0].taskReferenceName",
        "WorkflowTask taskReferenceName name cannot be empty or null",
    ),
    "a text as the definition of a sub-workflow": (
        workflow(step_of("SUB_WORKFLOW", "a", subWorkflowParam={"name": "x", "workflowDefinition": "x"})),
        "tasks[0].subWorkflowParam.workflowDefinition",
        "workflowDefinition must be a workflow definition, or an expression that gives one: ${…}",
    ),
}


@pytest.mark.parametrize("case", INVALID_WORKFLOWS)
def test_an_invalid_workflow_definition_is_reported(case):
    document, path, message = INVALID_WORKFLOWS[case]

    [validation_error] = workflow_errors(document)

    assert (validation_error.path, validation_error.message) == (path, message)


REQUIRED = {
    "EVENT": (step_of("EVENT", "a"), ["sink"]),
    "DECISION": (step_of("DECISION", "a"), ["caseValueParam", "decisionCases"]),
    "SWITCH": (step_of("SWITCH", "a"), ["evaluatorType", "expression", "decisionCases"]),
    "DYNAMIC": (step_of("DYNAMIC", "a"), ["dynamicTaskNameParam"]),
    "DO_WHILE": (step_of("DO_WHILE", "a"), ["loopCondition", "loopOver"]),
    "FORK_JOIN_DYNAMIC": (
        step_of("FORK_JOIN_DYNAMIC", "a"),
        ["dynamicForkTasksParam", "dynamicForkTasksInputParamName"],
    ),
    "HTTP": (step_of("HTTP", "a"), ["inputParameters.http_request"]),
    "KAFKA_PUBLISH": (step_of("KAFKA_PUBLISH", "a"), ["inputParameters.kafka_request"]),
    "UPDATE_TASK": (step_of("UPDATE_TASK", "a"), ["inputParameters.taskStatus", "inputParameters.taskId"]),
    "GET_WORKFLOW": (step_of("GET_WORKFLOW", "a"), ["inputParameters.id"]),
    "TERMINATE_WORKFLOW": (step_of("TERMINATE_WORKFLOW", "a"), ["inputParameters.workflowId"]),
    "JSON_JQ_TRANSFORM": (step_of("JSON_JQ_TRANSFORM", "a"), ["inputParameters.queryExpression"]),
    "SUB_WORKFLOW": (step_of("SUB_WORKFLOW", "a"), ["subWorkflowParam"]),
}


@pytest.mark.parametrize("kind", REQUIRED)
def test_each_step_type_requires_its_own_fields(kind):
    task, fields = REQUIRED[kind]

    messages = [each.message for each in workflow_errors(workflow(task, JOIN))]

    assert messages == [f"{field} field is required for taskType: {kind} taskName: a" for field in fields]


def try_step(**fields):
    return step_of("TRY_CATCH", "t", **{"tryTasks": [simple("charge")], **fields})


INVALID_TRIES = {
    "no handlers": (try_step(), "needs catchCases, catchDefault or finallyTasks"),
    "an unknown field": (try_step(catchCases=[{"match": {"reasn": "x"}}]), "Did you mean reason?"),
    "an unknown status": (try_step(catchCases=[{"match": {"status": "TIMEDOUT"}}]), "Did you mean TIMED_OUT?"),
    "an unknown task": (try_step(catchCases=[{"match": {"taskRef": ["chrge"]}}]), "Did you mean charge?"),
    "an invalid regular expression": (try_step(catchCases=[{"match": {"reason": "("}}]), "reason '(' is not supported"),
    "a reason that is not a text": (try_step(catchCases=[{"match": {"reason": ["a", "b"]}}]), "reason must be a text"),
    "a type that is not a text": (
        try_step(catchCases=[{"match": {"taskType": [7]}}]),
        "must be a text, or a list of texts",
    ),
}


@pytest.mark.parametrize(("task", "expected_message"), INVALID_TRIES.values(), ids=INVALID_TRIES)
def test_an_invalid_catch_case_is_reported_by_validation(task, expected_message):
    [validation_error] = workflow_errors(workflow(task))

    assert expected_message in validation_error.message


def test_all_errors_of_a_try_and_its_nested_steps_are_reported_together():
    cases = [{"match": {"status": "X", "taskRef": "y"}, "tasks": [step_of("HTTP", "a")]}]
    errors = workflow_errors(workflow(try_step(catchCases=cases, finallyTasks=[simple("charge")])))

    assert len(errors) == 4


def for_each(**inputs):
    return step_of("FOR_EACH", "e", items="${workflow.input.x}", loopOver=[simple("a")], inputParameters=inputs)


INVALID_FOR_EACH = {
    "no list": ({**for_each(), "items": None}, "items field is required"),
    "no body": ({**for_each(), "loopOver": []}, "loopOver field is required"),
    "zero parallel items": (for_each(parallel=0), "parallel of taskName: e must be a whole number of at least 1"),
    "a fractional keepLastN": (
        for_each(keepLastN=1.5),
        "keepLastN of taskName: e must be a whole number of at least 0",
    ),
    "an unknown policy": (for_each(onItemFailure="CONTINU"), "Did you mean CONTINUE?"),
    "a task with the name of the items": (
        {**for_each(), "loopOver": [simple("e_item")]},
        "taskReferenceName: e_item should be unique",
    ),
    "an invalid task inside": ({**for_each(), "loopOver": [step_of("HTTP", "a")]}, "required for taskType: HTTP"),
}


@pytest.mark.parametrize(("task", "expected_message"), INVALID_FOR_EACH.values(), ids=INVALID_FOR_EACH)
def test_invalid_for_each_settings_are_reported_by_validation(task, expected_message):
    [validation_error] = workflow_errors(workflow(task))

    assert expected_message in validation_error.message


ACCEPTED = {
    "settings as expressions": for_each(
        parallel="${workflow.input.n}", onItemFailure="${workflow.input.p}", keepLastN="3"
    ),
    "a try with every part": try_step(
        catchCases=[{"match": {"status": ["FAILED"], "reason": "(?i)no .*", "taskRef": "charge"}, "tasks": []}, {}],
        catchDefault=[simple("other")],
        finallyTasks=[simple("last")],
    ),
    "a loop over a list without a condition of its own": step_of(
        "DO_WHILE", "a", loopCondition="", items="${workflow.input.x}", loopOver=[simple("b")]
    ),
    "a dynamic fork by a list of inputs": step_of("FORK_JOIN_DYNAMIC", "a", inputParameters={"forkTaskInputs": []}),
    "a dynamic fork in the deprecated form": step_of("FORK_JOIN_DYNAMIC", "a", dynamicForkJoinTasksParam="x"),
    "an HTTP task whose definition has the request": step_of(
        "HTTP", "a", taskDefinition={"name": "a", "inputTemplate": {"uri": "http://x"}}
    ),
    "a custom type": step_of("MY_OWN", "a"),
    "a wait with an expression": wait("a", duration="${workflow.input.d}"),
    "a loop with an invalid task": step_of("DO_WHILE", "a", loopCondition="1", loopOver=[step_of("HTTP", "b")]),
    "predefined names in expressions": simple("a", inputParameters={"x": "${CPEWF_TASK_ID} ${NETFLIX_ENV}"}),
    "a reference to a task inside a branch": simple("a", inputParameters={"x": "${inner.output.x} ${a.output}"}),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_documents_that_clients_rely_on_are_accepted(case):
    inner = step_of("SWITCH", "s", evaluatorType="x", expression="y", decisionCases={"z": [simple("inner")]})

    assert workflow_errors(workflow(ACCEPTED[case], JOIN, inner)) == []


REFUSED = {
    "an optional terminate": (
        step_of("TERMINATE", "a", optional=True, inputParameters={"terminationStatus": "FAILED"}),
        "terminate task cannot be optional, taskName: a",
    ),
    "a terminate without a status": (
        step_of("TERMINATE", "a"),
        "terminate task must have an terminationStatus parameter and must be set to COMPLETED, FAILED or TERMINATED, "
        "taskName: a",
    ),
    "a terminate whose status is no text": (
        step_of("TERMINATE", "a", inputParameters={"terminationStatus": ["FAILED"]}),
        "terminate task must have an terminationStatus parameter and must be set to COMPLETED, FAILED or TERMINATED, "
        "taskName: a",
    ),
    "a wait with two ends": (
        wait("a", duration="1s", until="2027-01-01"),
        "Both 'duration' and 'until' specified. Please provide only one input",
    ),
    "a wait with an invalid duration": (
        wait("a", duration="soon"),
        "Invalid duration \"soon\". Use the format '2 days 3 hours 5 minutes 10 seconds'.",
    ),
    "both forms of a dynamic fork": (
        step_of("FORK_JOIN_DYNAMIC", "a", dynamicForkJoinTasksParam="x", dynamicForkTasksParam="y"),
        "dynamicForkJoinTasksParam or combination of dynamicForkTasksInputParamName and dynamicForkTasksParam cannot "
        "be used together for taskType: FORK_JOIN_DYNAMIC taskName: a",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_definition_that_can_never_run_is_refused(case):
    task, message = REFUSED[case]

    assert [each.message for each in workflow_errors(workflow(task, JOIN))] == [message]


def test_all_errors_are_reported_together():
    errors = workflow_errors({"version": "x", "schemaVersion": 3, "tasks": [None, {}, simple("a", retryCount=[])]})

    assert [each.path for each in errors] == [
        "version",
        "tasks[0]",
        "tasks[2].retryCount",
        "name",
        "schemaVersion",
        "tasks[1].name",
        "tasks[1].taskReferenceName",
    ]


def test_the_depth_of_nested_steps_is_limited():
    def nested(levels):
        task = simple("core")
        for level in range(levels):
            cases = {"x": [task]}
            task = step_of("SWITCH", f"s{level}", evaluatorType="value-param", expression="x", decisionCases=cases)
        return workflow(task)

    assert workflow_errors(nested(59)) == []
    assert "nested more than 60 levels deep" in workflow_errors(nested(61))[0].message
    assert "nested more than 60 levels deep" in workflow_errors(nested(900))[0].message


def test_defaults_are_filled_in_and_unknown_fields_survive_at_every_level():
    normalized = normalize_workflow(workflow({"name": "a", "workflowTaskType": "HTTP", "color": "red"}, color="blue"))

    assert (normalized["color"], normalized["version"], normalized["timeoutPolicy"], normalized["enforceSchema"]) == (
        "blue",
        1,
        "ALERT_ONLY",
        True,
    )
    [task] = normalized["tasks"]
    assert (task["color"], task["type"], task["asyncComplete"], task["joinOn"]) == ("red", "HTTP", False, [])
    assert "failureWorkflow" not in normalized
    assert "retryCount" not in task


NAMES = st.sampled_from([field.name for field in (*WORKFLOW_DEFINITION, *STEP_FIELDS)])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("SWITCH"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=6),
    max_leaves=30,
)


@given(JSON_VALUES)
def test_every_document_can_be_checked(document):
    assert isinstance(workflow_errors(document), list)


@given(JSON_VALUES)
def test_every_list_of_tasks_can_be_checked(tasks):
    assert isinstance(workflow_errors({"name": "x", "tasks": [tasks, tasks]}), list)


@given(JSON_VALUES)
def test_conversion_of_a_document_neither_fails_nor_hides_errors(document):
    before, after = workflow_errors(document), workflow_errors(coerce_workflow(document))

    assert [each.path for each in after] == [each.path for each in before]
