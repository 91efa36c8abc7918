"""SUB_WORKFLOW: the input of a child run and the effect of its end on the parent (execution §8.10, §1.4)."""

import pytest

from conductor_app.core import commands
from conductor_app.core.errors import AlreadyResolved
from tests.builders import definition, plan, policy, step, sub_workflow
from tests.core.simulated_run import RunInMemory

CHILD = plan(step("x"), name="child")


def start_run(*, run_fields: dict | None = None, input: dict | None = None, **fields) -> RunInMemory:
    return RunInMemory(
        plan(sub_workflow("s", **fields), step("after")), input, known={"child": CHILD}, **(run_fields or {})
    )


@pytest.mark.parametrize(
    ("child", "task", "parent"),
    [
        ("COMPLETED", "COMPLETED", "RUNNING"),
        ("FAILED", "FAILED", "FAILED"),
        ("TERMINATED", "CANCELED", "TERMINATED"),
        ("TIMED_OUT", "TIMED_OUT", "TIMED_OUT"),
    ],
)
def test_a_sub_workflow_task_ends_with_the_status_of_its_child(child, task, parent):
    run = start_run()
    id = run.task("s").attempt.child_id

    run.child_ended("s", child, "no luck", n=1)

    assert (run.statuses["s"], run.status) == (task, parent)
    assert run.task("s").attempt.output == {"n": 1, "subWorkflowId": id}
    if child != "COMPLETED":
        assert run.task("s").attempt.reason == f"Sub workflow child.1/{id} failure reason: no luck"


@pytest.mark.parametrize("end", ["FAILED", "TERMINATED", "TIMED_OUT"])
def test_the_parent_continues_after_an_optional_task_fails(end):
    run = start_run(optional=True)

    run.child_ended("s", end)

    assert run.statuses == {"s": "COMPLETED_WITH_ERRORS", "after": "SCHEDULED"}


def test_the_child_inherits_the_start_parameters_of_its_parent():
    fields = {"correlation_id": "order 7", "priority": 5, "domains": {"x": "blue"}}
    [started] = start_run(run_fields=fields).started

    assert (started.correlation_id, started.priority, started.domains) == ("order 7", 5, {"x": "blue"})


def test_the_child_can_have_its_own_priority_and_domains():
    fields = {"priority": 5, "domains": {"x": "blue"}}
    [started] = start_run(
        run_fields=fields, param={"priority": "${workflow.input.p}", "taskToDomain": {"x": "red"}}, input={"p": 9}
    ).started

    assert (started.priority, started.domains) == (9, {"x": "red"})


@pytest.mark.parametrize(
    ("inputs", "input"),
    [
        ({"a": 1}, {"a": 1}),
        ({"a": 1, "workflowInput": {"b": 2}}, {"a": 1, "workflowInput": {"b": 2}}),
        ({"a": 1, "workflowInput": {}}, {"a": 1, "workflowInput": {}}),
    ],
)
def test_the_input_of_a_child_is_that_of_its_task(inputs, input):
    assert start_run(inputs=inputs).started[0].input == input


def test_each_attempt_has_a_child_of_its_own():
    run = start_run(policy=policy(retries=1))
    first = run.task("s").attempt.child_id

    run.child_ended("s", "FAILED")

    second = run.task("s").attempt
    assert (run.statuses["s"], second.number, second.child_id != first) == ("IN_PROGRESS", 1, True)
    assert [started.id for started in run.started] == [first, second.child_id]
    assert run.started[1].parent_attempt_id == second.id


def test_a_child_can_have_an_inline_definition():
    document = definition(step("x"), name="inline")

    assert RunInMemory(plan(sub_workflow("s", document))).started[0].definition.name == "inline"


def test_a_child_definition_can_come_from_an_expression():
    inline = sub_workflow("s", param={"workflowDefinition": "${workflow.input.plan}"})
    document = definition(step("x"), name="given")

    assert RunInMemory(plan(inline), {"plan": document}).started[0].definition.name == "given"


def test_a_child_may_be_named_by_an_expression():
    run = RunInMemory(plan(sub_workflow("s", "${workflow.input.which}")), {"which": "child"}, known={"child": CHILD})

    assert run.started[0].definition is CHILD


@pytest.mark.parametrize("which", ["nobody", None, 7])
def test_a_missing_child_definition_fails_the_task(which):
    run = RunInMemory(plan(sub_workflow("s", "${workflow.input.which}")), {"which": which})

    assert run.status == "FAILED"
    assert (
        "No such workflow definition" in run.snapshot.reason or "must be the name of a workflow" in run.snapshot.reason
    )


def test_the_child_is_stopped_with_its_parent():
    run = start_run()
    run.apply(commands.terminate_run("enough"))

    [message] = run.sent_messages
    assert (message.to, message.subject) == (run.task("s").attempt.child_id, "terminate")
    assert "enough" in message.facts["reason"]


def test_the_end_of_an_abandoned_child_is_ignored():
    run = start_run()
    run.apply(commands.terminate_run("enough"))

    with pytest.raises(AlreadyResolved):
        run.child_ended("s", "TERMINATED")


def test_the_end_of_a_child_is_reported_to_its_parent():
    child = RunInMemory(CHILD, parent_id="parent", parent_attempt_id="attempt").completes("x")

    [message] = child.sent_messages
    assert (message.to, message.subject) == ("parent", "child_ended")
    assert message.facts == {"attempt": "attempt", "child": "run"}
