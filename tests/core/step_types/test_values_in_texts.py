"""Values of any type in fields of text, and in messages: they are JSON, never the notation of Python."""

import pytest

from tests.builders import (
    decision,
    dynamic,
    event,
    plan,
    start_workflow,
    step,
    sub_workflow,
    terminate,
    wait,
)
from tests.core.simulated_run import RunInMemory

CHILD = plan(step("x"), name="child")
X = "${workflow.input.x}"


def run_with(x, *steps) -> RunInMemory:
    return RunInMemory(plan(*steps), {"x": x}, known={"child": CHILD})


VALUES = [(True, "true"), ({"a": None, "b": True}, '{"a":null,"b":true}'), ([None, "a"], '[null,"a"]'), (0, "0")]


@pytest.mark.parametrize(("x", "text"), VALUES)
def test_a_reason_of_terminate_is_json(x, text):
    run = run_with(x, terminate("end", "FAILED", reason=X))

    assert run.snapshot.reason == text


@pytest.mark.parametrize(("x", "text"), VALUES)
def test_a_correlation_id_of_start_workflow_is_json(x, text):
    [started] = run_with(x, start_workflow("s", name="child", correlationId=X)).started

    assert started.correlation_id == text


@pytest.mark.parametrize("x", [True, 7])
def test_a_domain_is_a_text(x):
    [started] = run_with(x, sub_workflow("s", param={"taskToDomain": {"x": X}})).started

    assert started.domains == {"x": "true" if x is True else "7"}


@pytest.mark.parametrize("x", [True, {"a": 1}, "high"])
def test_a_priority_of_a_sub_workflow_that_is_no_number_is_ignored(x):
    [started] = RunInMemory(
        plan(sub_workflow("s", param={"priority": X})), {"x": x}, known={"child": CHILD}, priority=7
    ).started

    assert started.priority == 7


@pytest.mark.parametrize(("x", "text"), [(True, "true"), ({"a": None}, '{"a": null}'), ("high", '"high"')])
def test_a_priority_of_start_workflow_that_is_no_number_is_refused(x, text):
    run = run_with(x, start_workflow("s", name="child", priority=X))

    assert run.task("s").attempt.reason == f"`startWorkflow.priority` must be a whole number, not {text}."


def test_a_case_of_decision_is_printed_as_java_prints_it():
    run = run_with({"a": None}, decision("x", {"{a=null}": [step("y")]}))

    assert "y" in run.statuses


REASONS = {
    "a missing name of DYNAMIC": (dynamic("t", X), None, "must be the name of a task, not null."),
    "an object as a name of DYNAMIC": (dynamic("t", X), {"a": True}, 'must be the name of a task, not {"a": true}.'),
    "a missing name of SUB_WORKFLOW": (
        sub_workflow("t", param={"name": X}),
        None,
        "`subWorkflowParam.name` must be the name of a workflow, not null.",
    ),
    "a version of SUB_WORKFLOW": (
        sub_workflow("t", param={"version": X}),
        True,
        "`subWorkflowParam.version` must be a whole number, not true.",
    ),
    "a missing name of START_WORKFLOW": (
        start_workflow("t", name=X),
        None,
        "`startWorkflow.name` must be the name of a workflow, not null.",
    ),
    "a version of START_WORKFLOW": (
        start_workflow("t", name="child", version=X),
        [None],
        "`startWorkflow.version` must be a whole number, not [null].",
    ),
    "a duration": (wait("t", duration=X), True, "Invalid duration true."),
    "a moment": (wait("t", until=X), {"a": None}, 'Invalid timestamp {"a": null}.'),
    "a missing sink": (event("t", X), None, "The sink of t must be a text, not null."),
    "a sink": (event("t", X), True, "The sink of t must be a text, not true."),
    "a status of TERMINATE": (terminate("t", X), True, "TERMINATED, not true."),
    "a strategy of idempotency": (
        sub_workflow("t", param={"idempotencyKey": "k", "idempotencyStrategy": X}),
        True,
        "FAIL_ON_RUNNING, not true.",
    ),
}


@pytest.mark.parametrize(("written", "x", "reason"), REASONS.values(), ids=REASONS)
def test_a_reason_shows_the_wrong_value_as_json_and_names_its_field(written, x, reason):
    run = run_with(x, written)

    assert reason in run.task("t").attempt.reason
