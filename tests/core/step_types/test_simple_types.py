"""The smaller kinds: TERMINATE, INLINE, SET_VARIABLE, NOOP, HUMAN, DYNAMIC, START_WORKFLOW, and types of others."""

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
    start_workflow,
    step,
    step_without_policy,
    terminate,
)
from tests.core.simulated_run import RunInMemory


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "TERMINATED"])
def test_a_terminate_ends_the_run_with_its_status(status):
    life = RunInMemory(plan(fork([step("a")], [terminate("end", status, "enough", {"n": 1})], on=[]), step("b")))

    assert life.status == status
    assert life.run.reason == "enough"
    assert life.run.output == {"n": 1}
    assert life.statuses["a"] == "CANCELED"


def test_a_terminate_without_a_reason_has_a_default_reason():
    life = RunInMemory(plan(terminate("end")))

    assert life.run.reason == f"Workflow is COMPLETED by TERMINATE task: {life.task('end').attempt.id}"


@pytest.mark.parametrize(
    ("given", "output"), [(None, {}), ({"n": 1}, {"n": 1}), ("text", {"output": "text"}), ([1], {"output": [1]})]
)
def test_the_output_of_a_terminate_becomes_that_of_the_run(given, output):
    assert RunInMemory(plan(terminate("end", output=given))).run.output == output


def test_a_terminate_with_another_status_fails():
    life = RunInMemory(plan(terminate("end", "STOPPED")))

    assert (life.status, "STOPPED" in life.run.reason) == ("FAILED", True)


def test_an_inline_has_the_value_of_its_script():
    life = RunInMemory(plan(inline("sum", "$.a + 1", inputs={"a": 1})), scripts={"$.a + 1": 2})

    assert life.task("sum").attempt.output == {"result": 2}


def test_an_inline_that_fails_fails_for_good():
    broken = ScriptResult(error="a is not defined")
    life = RunInMemory(plan(inline("sum", "a", policy=policy(retries=3))), scripts={"a": broken})

    assert life.statuses == {"sum": "FAILED_WITH_TERMINAL_ERROR"}
    assert life.task("sum").attempt.output == {"error": "a is not defined"}


def test_a_slow_inline_is_retried_by_its_policy():
    answers = iter([ScriptResult(error="too long", timed_out=True), ScriptResult(5)])
    life = RunInMemory(
        plan(inline("sum", "f()", policy=policy(retries=1, delay_seconds=5))), scripts={"f()": lambda _: next(answers)}
    )
    assert life.statuses == {"sum": "SCHEDULED"}

    assert life.later(4).statuses == {"sum": "SCHEDULED"}
    assert life.later(1).task("sum").attempt.output == {"result": 5}


@pytest.mark.parametrize("expression", ["", "  "])
def test_an_inline_without_an_expression_fails_with_a_reason(expression):
    life = RunInMemory(plan(inline("sum", expression)))

    assert (life.status, "expression" in life.run.reason) == ("FAILED", True)


def test_variables_are_overwritten_by_name():
    steps = [set_variable("one", a=1, b=1), set_variable("two", b="${workflow.input.n}", c=None)]
    life = RunInMemory(plan(*steps, variables={"z": 0}), {"n": 2})

    assert life.run.variables == {"z": 0, "a": 1, "b": 2, "c": None}
    assert life.task("one").attempt.output == {}


def test_variables_that_are_too_large_fail_the_task():
    life = RunInMemory(plan(set_variable("big", text="x" * 300_000), variables={"z": 0}))

    assert (life.status, life.run.variables) == ("FAILED", {"z": 0})


def test_a_noop_completes_immediately_without_output():
    attempt = RunInMemory(plan(noop("n", inputParameters={"a": 1}))).task("n").attempt

    assert (attempt.status, attempt.input, attempt.output) == ("COMPLETED", {}, {})


def test_a_human_waits_for_a_person():
    life = RunInMemory(plan(human("ask", inputs={"question": "?"}))).later(10**6)
    assert life.statuses == {"ask": "IN_PROGRESS"}

    assert life.completes("ask", answer=42).run.output == {"answer": 42}


def test_a_dynamic_task_waits_in_the_queue_that_its_input_names():
    life = RunInMemory(plan(dynamic("any", "${workflow.input.name}")), {"name": "pay"})

    assert life.task("any").attempt.queue == "pay"


@pytest.mark.parametrize("name", [None, "", "  ", 7])
def test_a_dynamic_task_without_a_name_fails_the_run(name):
    life = RunInMemory(plan(dynamic("any", "${workflow.input.name}")), {"name": name})

    assert (life.status, "'chosen'" in life.run.reason) == ("FAILED", True)


def test_a_started_workflow_is_not_waited_for():
    other = plan(step("x"), name="other")
    life = RunInMemory(
        plan(start_workflow("go", name="other", input={"n": 1}, correlationId="c")), known={"other": other}
    )

    [started] = life.started
    assert life.status == "COMPLETED"
    assert life.task("go").attempt.output == {"workflowId": started.id}
    assert (started.definition, started.input, started.correlation_id) == (other, {"n": 1}, "c")
    assert started.parent_attempt_id == ""


@pytest.mark.parametrize("request_", [{"name": "nobody"}, {"name": ""}, {"name": "other", "version": "two"}, {}])
def test_a_workflow_that_cannot_be_started_fails_the_task(request_):
    life = RunInMemory(plan(start_workflow("go", **request_)), known={"other": plan(step("x"), name="other")})

    assert (life.status, life.started) == ("FAILED", [])


def test_an_unknown_step_type_is_a_task_for_workers_of_that_type():
    life = RunInMemory(plan({**step_without_policy("odd", "some_name"), "type": "CUSTOM"}))

    assert life.task("odd").attempt.queue == "CUSTOM"


def test_a_start_delay_lets_the_first_attempt_wait():
    life = RunInMemory(plan(step("a", startDelay=10)))

    assert (life.task("a").attempt.visible_at, life.statuses) == (10_000, {"a": "SCHEDULED"})


def test_a_step_with_async_complete_stays_in_progress():
    life = RunInMemory(plan(step("a", asyncComplete=True)))
    life.claim("a")

    life.report("a", "IN_PROGRESS", {"ticket": 1})

    assert life.statuses == {"a": "IN_PROGRESS"}
    assert life.completes("a").status == "COMPLETED"
