"""Data requests of the core: all are made at once, and the decision is repeated with the answers."""

from dataclasses import replace

import pytest

from conductor_app.core import decide as core_decide
from conductor_app.core.commands import no_command
from conductor_app.core.data_requests import (
    ActiveDomains,
    AttemptPayload,
    DataRequired,
    DefinitionByName,
    Environment,
    IterationOutcomes,
    RunPayload,
    ScriptEvaluation,
    ScriptResult,
    TaskPart,
)
from conductor_app.core.decide import apply_command, decide
from conductor_app.core.decision_context import DecisionContext
from conductor_app.core.definition import Key
from conductor_app.core.snapshot import UNKNOWN, Run
from tests.builders import fork, inline, loop, noop, plan, set_variable, step, sub_workflow
from tests.core.simulated_run import RunInMemory


def find_data_requests(*steps, **fields) -> set:
    run = Run("run", plan(*steps), "RUNNING", 0, **fields)
    decision = decide(run, {}, 0)
    assert decision.effects == ()
    assert decision.after is run
    return set(decision.data_requests)


@pytest.mark.parametrize(
    ("steps", "data_request"),
    [
        ([step("a", inputs={"n": "${workflow.input.n}"})], RunPayload("input")),
        ([step("a", inputs={"n": "${workflow.variables.n}"})], RunPayload("variables")),
        ([step("a", inputs={"n": "${workflow.env.REGION}"})], Environment()),
        ([set_variable("a", n=1)], RunPayload("variables")),
        (
            [inline("a", "sum()")],
            ScriptEvaluation("javascript", "sum()", '{"evaluatorType": "javascript", "expression": "sum()"}', "order"),
        ),
        ([sub_workflow("a", "child", version=2)], DefinitionByName("child", 2)),
    ],
)
def test_data_of_the_first_step_is_requested(steps, data_request):
    assert find_data_requests(*steps) == {data_request}


def test_a_step_without_references_requests_no_data():
    run = Run("run", plan(step("a", inputs={"n": 1, "id": "${workflow.workflowId}"})), "RUNNING", 0)

    assert decide(run, {}, 0).data_requests == frozenset()


def test_a_simple_script_requests_no_data():
    run = Run("run", plan(inline("a", "$.n * 2", inputs={"n": 4})), "RUNNING", 0, input={}, output={}, variables={})

    decision = decide(run, {}, 0)

    assert not decision.data_requests
    assert decision.after.tasks[Key("a")].attempt.output == {"result": 8}


def test_the_data_for_the_end_of_an_iteration_is_requested_together():
    run = RunInMemory(plan(loop("l", step("a"), times=2, inputs={"most": "${workflow.input.most}"})))
    snapshot = replace(run.snapshot, is_whole=False, input=UNKNOWN)
    tasks = {key: without_output(task) if key.ref == "l" else task for key, task in snapshot.tasks.items()}
    command = core_decide.apply_report(run.task("a__1").attempt.id, core_decide.Report("COMPLETED", {}))

    requests = apply_command(replace(snapshot, tasks=tasks), command, {}, 0).data_requests

    assert requests == {
        IterationOutcomes(Key("l"), 1, frozenset({Key("a", (1,))})),
        AttemptPayload(run.task("l").attempt.id, "output"),
        RunPayload("input"),
    }


def test_the_requests_of_all_branches_are_raised_together():
    branches = [[step("a", inputs={"n": "${workflow.input.n}"})], [step("b", inputs={"n": "${workflow.variables.n}"})]]

    assert find_data_requests(*fork(*branches)) == {RunPayload("input"), RunPayload("variables")}


def test_the_payload_of_a_loaded_task_is_requested():
    run = RunInMemory(plan(step("a"), step("b", inputs={"n": "${a.output.n}"})))
    run.snapshot = replace(run.snapshot, tasks={key: without_output(task) for key, task in run.snapshot.tasks.items()})
    ctx = DecisionContext(run.snapshot, {})

    with pytest.raises(DataRequired) as found:
        ctx.resolve("${a.output.n}")

    assert found.value.data_requests == {AttemptPayload(run.task("a").attempt.id, "output")}


def without_output(task):
    return replace(task, attempt=replace(task.attempt, output=UNKNOWN))


def test_a_task_outside_the_snapshot_is_requested_by_its_reference():
    run = Run("run", plan(step("a"), step("b")), "RUNNING", 0, is_whole=False, next_seq=2)
    ctx = DecisionContext(run, {TaskPart("a", "output"): {"n": 7}, TaskPart("b", "output"): None})

    assert ctx.resolve({"n": "${a.output.n}", "none": "${b.output.n}"}) == {"n": 7, "none": None}
    with pytest.raises(DataRequired) as found:
        ctx.resolve("${a.status} ${b.input.x}")
    assert found.value.data_requests == {TaskPart("a", "facts"), TaskPart("b", "input")}


def test_a_task_missing_in_the_complete_run_is_absent():
    ctx = DecisionContext(Run("run", plan(step("a")), "RUNNING", 0), {Environment(): {}})

    assert ctx.resolve("${a.output.n}") is None


def test_a_decision_continues_with_the_loaded_data():
    data_request = ScriptEvaluation(
        "javascript", "sum()", '{"evaluatorType": "javascript", "expression": "sum()"}', "order"
    )
    run = Run("run", plan(inline("a", "sum()"), noop("b")), "RUNNING", 0, input={}, variables={}, output={})

    decision = apply_command(run, no_command, {data_request: ScriptResult(2)}, 0)

    assert decision.after.status == "COMPLETED"


@pytest.mark.parametrize(
    ("domains", "active", "chosen"),
    [
        ({}, (), ""),
        ({"pay": "blue"}, (), "blue"),
        ({"*": "blue"}, (), "blue"),
        ({"*": "red", "pay": "blue"}, (), "blue"),
        ({"pay": " red , blue "}, ("blue",), "blue"),
        ({"pay": "red,blue"}, (), "blue"),
        ({"pay": "red,NO_DOMAIN"}, (), ""),
        ({"pay": "red,NO_DOMAIN"}, ("red",), "red"),
        ({"pay": "red,no_domain"}, (), ""),
        ({"pay": ""}, (), ""),
    ],
)
def test_the_domain_of_a_task_type(domains, active, chosen):
    run = Run("run", plan(step("a", "pay")), "RUNNING", 0, domains=domains)

    assert DecisionContext(run, {ActiveDomains("pay"): frozenset(active)}).domain("pay") == chosen


FACTS = {
    "${workflow.workflowId}": "run",
    "${workflow.status}": "RUNNING",
    "${workflow.workflowType}": "order",
    "${workflow.version}": 1,
    "${workflow.correlationId}": "c",
    "${workflow.schemaVersion}": 2,
    "${workflow.parentWorkflowId}": None,
    "${workflow.createdBy}": None,
    "${a.status}": "COMPLETED",
    "${a.taskType}": "pay",
    "${a.taskDefName}": "pay",
    "${a.referenceTaskName}": "a",
    "${a.retryCount}": 0,
    "${a.workflowInstanceId}": "run",
    "${a.output.n}": 1,
    "${a.nonsense}": None,
    "${nobody.output.n}": None,
    "n is ${a.output.n}": "n is 1",
    "$${a.output.n}": "${a.output.n}",
}


@pytest.mark.parametrize(("expression", "value"), FACTS.items())
def test_expressions_can_read_the_run_and_its_tasks(expression, value):
    steps = [step("a", "pay"), step("b", inputs={"value": expression})]
    run = RunInMemory(plan(*steps), correlation_id="c").completes("a", n=1)

    assert run.task("b").attempt.input == {"value": value}


def test_the_input_template_replaces_missing_and_null_inputs():
    policy = {"name": "a", "inputTemplate": {"one": 1, "two": 2, "three": 3}}
    run = RunInMemory(plan(step("a", policy=policy, inputs={"two": "${workflow.input.none}", "three": "given"})))

    assert run.task("a").attempt.input == {"one": 1, "two": 2, "three": "given"}
