"""Small step types: TERMINATE, INLINE, SET_VARIABLE, NOOP, HUMAN, DYNAMIC, START_WORKFLOW and unknown types."""

import pytest

from conductor_app.core.data_requests import ScriptResult
from tests.builders import (
    dynamic,
    fork,
    human,
    inline,
    noop,
    plan,
    policy,
    set_variable,
    simple,
    start_workflow,
    step,
    terminate,
)
from tests.core.simulated_run import RunInMemory


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "TERMINATED"])
def test_a_terminate_ends_the_run_with_its_status(status):
    run = RunInMemory(plan(fork([step("a")], [terminate("end", status, "enough", {"n": 1})], on=[]), step("b")))

    assert run.status == status
    assert run.snapshot.reason == "enough"
    assert run.snapshot.output == {"n": 1}
    assert run.statuses["a"] == "CANCELED"


def test_a_terminate_without_a_reason_has_a_default_reason():
    run = RunInMemory(plan(terminate("end")))

    assert run.snapshot.reason == f"Workflow is COMPLETED by TERMINATE task: {run.task('end').attempt.id}"


@pytest.mark.parametrize(
    ("workflow_output", "output"),
    [(None, {}), ({"n": 1}, {"n": 1}), ("text", {"output": "text"}), ([1], {"output": [1]})],
)
def test_the_output_of_a_terminate_becomes_that_of_the_run(workflow_output, output):
    assert RunInMemory(plan(terminate("end", output=workflow_output))).snapshot.output == output


def test_a_terminate_with_another_status_fails():
    run = RunInMemory(plan(terminate("end", "STOPPED")))

    assert (run.status, "STOPPED" in run.snapshot.reason) == ("FAILED", True)


def test_an_inline_has_the_value_of_its_script():
    run = RunInMemory(plan(inline("sum", "$.a + 1", inputs={"a": 1})), scripts={"$.a + 1": 2})

    assert run.task("sum").attempt.output == {"result": 2}


def test_an_inline_that_fails_fails_for_good():
    broken = ScriptResult(error="a is not defined")
    run = RunInMemory(plan(inline("sum", "a", policy=policy(retries=3))), scripts={"a": broken})

    assert run.statuses == {"sum": "FAILED_WITH_TERMINAL_ERROR"}
    assert run.task("sum").attempt.output == {"error": "a is not defined"}


def test_a_slow_inline_is_retried_by_its_policy():
    answers = iter([ScriptResult(error="too long", timed_out=True), ScriptResult(5)])
    run = RunInMemory(
        plan(inline("sum", "f()", policy=policy(retries=1, delay_seconds=5))), scripts={"f()": lambda _: next(answers)}
    )
    assert run.statuses == {"sum": "SCHEDULED"}

    assert run.later(4).statuses == {"sum": "SCHEDULED"}
    assert run.later(1).task("sum").attempt.output == {"result": 5}


@pytest.mark.parametrize("expression", ["", "  "])
def test_an_inline_without_an_expression_fails_with_a_reason(expression):
    run = RunInMemory(plan(inline("sum", expression)))

    assert (run.status, "expression" in run.snapshot.reason) == ("FAILED", True)


def test_variables_are_overwritten_by_name():
    steps = [set_variable("one", a=1, b=1), set_variable("two", b="${workflow.input.n}", c=None)]
    run = RunInMemory(plan(*steps, variables={"z": 0}), {"n": 2})

    assert run.snapshot.variables == {"z": 0, "a": 1, "b": 2, "c": None}
    assert run.task("one").attempt.output == {}


def test_variables_that_are_too_large_fail_the_task():
    run = RunInMemory(plan(set_variable("big", text="x" * 300_000), variables={"z": 0}))

    assert (run.status, run.snapshot.variables) == ("FAILED", {"z": 0})


def test_a_noop_completes_immediately_without_output():
    attempt = RunInMemory(plan(noop("n", inputParameters={"a": 1}))).task("n").attempt

    assert (attempt.status, attempt.input, attempt.output) == ("COMPLETED", {}, {})


def test_a_human_waits_for_a_person():
    run = RunInMemory(plan(human("ask", inputs={"question": "?"}))).later(10**6)
    assert run.statuses == {"ask": "IN_PROGRESS"}

    assert run.completes("ask", answer=42).snapshot.output == {"answer": 42}


def test_a_dynamic_task_waits_in_the_queue_that_its_input_names():
    run = RunInMemory(plan(dynamic("any", "${workflow.input.name}")), {"name": "pay"})

    assert run.task("any").attempt.queue == "pay"


@pytest.mark.parametrize("name", [None, "", "  ", 7])
def test_a_dynamic_task_without_a_name_fails_the_run(name):
    run = RunInMemory(plan(dynamic("any", "${workflow.input.name}")), {"name": name})

    assert (run.status, "'chosen'" in run.snapshot.reason) == ("FAILED", True)


def test_a_started_workflow_is_not_waited_for():
    other = plan(step("x"), name="other")
    run = RunInMemory(
        plan(start_workflow("go", name="other", input={"n": 1}, correlationId="c")), known={"other": other}
    )

    [started] = run.started
    assert run.status == "COMPLETED"
    assert run.task("go").attempt.output == {"workflowId": started.id}
    assert (started.definition, started.input, started.correlation_id) == (other, {"n": 1}, "c")
    assert started.parent_attempt_id == ""


@pytest.mark.parametrize("request_", [{"name": "nobody"}, {"name": ""}, {"name": "other", "version": "two"}, {}])
def test_a_workflow_that_cannot_be_started_fails_the_task(request_):
    run = RunInMemory(plan(start_workflow("go", **request_)), known={"other": plan(step("x"), name="other")})

    assert (run.status, run.started) == ("FAILED", [])


def test_an_unknown_step_type_is_a_task_for_workers_of_that_type():
    run = RunInMemory(plan({**simple("odd", "some_name"), "type": "CUSTOM"}))

    assert run.task("odd").attempt.queue == "CUSTOM"


def test_a_start_delay_lets_the_first_attempt_wait():
    run = RunInMemory(plan(step("a", startDelay=10)))

    assert (run.task("a").attempt.visible_at, run.statuses) == (10_000, {"a": "SCHEDULED"})


def test_a_step_with_async_complete_stays_in_progress():
    run = RunInMemory(plan(step("a", asyncComplete=True)))
    run.claim("a")

    run.report("a", "IN_PROGRESS", {"ticket": 1})

    assert run.statuses == {"a": "IN_PROGRESS"}
    assert run.completes("a").status == "COMPLETED"


def test_a_value_of_the_input_template_is_used_where_an_input_is_null_and_its_expressions_are_resolved():
    template = {"url": "http://default", "w": "${workflow.input.w}", "x": "${workflow.input.other}"}
    given = {"url": "${workflow.input.url}", "x": "${workflow.input.x}"}
    run = RunInMemory(
        plan(step("a", inputs=given, taskDefinition={**policy(), "inputTemplate": template})), {"other": 1}
    )

    assert run.task("a").attempt.input == {"url": "http://default", "w": None, "x": 1}
