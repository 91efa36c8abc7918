"""Steps that fail the run without a task of their own: forks without a JOIN, and lists without tasks."""

from typing import Any

import pytest

from tests.builders import catch, definition, dynamic_fork, fork, loop, step, sub_workflow, switch, try_
from tests.runs.report_contexts import row_violations
from tests.scenario import Scenario, register_definitions

UNJOINED = "Fork task definition is not followed by a join task.  Check the blueprint"
INVALID = "Input 'tasks' is invalid. Cannot deserialize a list of Workflow Tasks from"


def unjoined_fork() -> dict[str, Any]:
    return fork([step("a")], [step("b")], ref="unjoined")[0]


def test_a_run_fails_at_its_start_where_no_join_follows_its_first_fork(clock):
    scenario = Scenario(clock, unjoined_fork())

    assert (scenario.status, scenario.reason, scenario.statuses) == ("FAILED", UNJOINED, {})
    assert row_violations(scenario.id) == []


def test_a_run_fails_at_a_fork_without_a_join(clock):
    scenario = Scenario(clock, step("before"), unjoined_fork(), step("after"))
    scenario.worker("before").completes()

    assert (scenario.status, scenario.reason, scenario.statuses) == ("FAILED", UNJOINED, {"before": "COMPLETED"})


def test_other_branches_are_canceled_if_one_reaches_such_a_fork(clock):
    scenario = Scenario(clock, *fork([step("x"), unjoined_fork()], [step("y")], on=["x", "y"]))
    scenario.worker("x").completes()

    assert (scenario.status, scenario.reason) == ("FAILED", UNJOINED)
    assert scenario.statuses["y"] == "CANCELED"
    assert "unjoined" not in scenario.statuses


def test_a_fork_in_a_loop_requires_its_join(clock):
    scenario = Scenario(clock, loop("l", unjoined_fork(), times=2))

    assert (scenario.status, scenario.reason) == ("FAILED", UNJOINED)


def test_a_surrounding_try_catch_handles_the_failure_of_such_a_fork(clock):
    scenario = Scenario(clock, try_("t", unjoined_fork(), on=[catch(step("rescue"), reason=".*join task.*")]))

    assert (scenario.status, scenario.statuses["rescue__2"]) == ("RUNNING", "SCHEDULED")


def test_a_parent_receives_the_reason_of_its_failed_child(clock):
    child = definition(unjoined_fork(), name="child")
    scenario = Scenario(clock, sub_workflow("s", "child"), others=[child])

    assert scenario.status == "FAILED"
    assert UNJOINED in scenario.task("s").reason


def test_a_failure_workflow_follows_such_an_end(clock):
    scenario = Scenario(
        clock, unjoined_fork(), others=[definition(step("repair"), name="repairs")], failureWorkflow="repairs"
    )

    assert scenario.worker("repair").polls() == ["repair"]
    assert scenario.status == "FAILED"


@pytest.mark.parametrize(
    ("tasks", "shown"),
    [
        ("nope", "'nope'"),
        (None, "'null'"),
        (["a", "b"], """'["a", "b"]'"""),
        ({"a": 1}, """'{"a": 1}'"""),
        ([{"type": "SIMPLE"}], """'[{"type": "SIMPLE"}]'"""),
        ("x" * 10_000, f"'{'x' * 500}…'"),
    ],
)
def test_an_invalid_list_of_tasks_fails_the_run_before_the_fork_is_scheduled(clock, tasks, shown):
    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": tasks, "inputs": {}})

    assert (scenario.status, scenario.statuses) == ("FAILED", {})
    assert scenario.reason == f"{INVALID} {shown}"
    assert row_violations(scenario.id) == []


@pytest.mark.parametrize("inputs", ["x", ["a"], 7])
def test_inputs_of_forked_tasks_are_a_map(clock, inputs):
    tasks = [{"name": "a", "taskReferenceName": "a", "type": "SIMPLE"}]
    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": tasks, "inputs": inputs})

    assert (scenario.status, scenario.statuses) == ("FAILED", {})
    assert scenario.reason.startswith("Input to the dynamically forked tasks is not a map")


def test_an_optional_dynamic_fork_fails_without_failing_the_run(clock):
    fan, joined = dynamic_fork()
    scenario = Scenario(clock, {**fan, "optional": True}, joined, step("after"), input={"tasks": "nope"})

    assert scenario.statuses["fan"] == "COMPLETED_WITH_ERRORS"
    assert scenario.status == "RUNNING"


def test_such_a_run_continues_after_a_restart_with_a_corrected_definition(clock):
    scenario = Scenario(clock, unjoined_fork())
    register_definitions(definition(*fork([step("a")], [step("b")])))
    scenario.restart(latest_definitions=True)

    assert scenario.status == "RUNNING"
    assert scenario.statuses["a"] == "SCHEDULED"


def test_a_run_that_failed_like_this_can_be_rerun_from_a_task_before(clock):
    scenario = Scenario(clock, step("before"), *dynamic_fork("fan", "joined", {"tasks": "${before.output.tasks}"}))
    scenario.worker("before").completes(tasks="nope")
    assert scenario.status == "FAILED"

    scenario.rerun("before")
    scenario.worker("before").completes(tasks=[{"name": "a", "taskReferenceName": "a", "type": "SIMPLE"}])

    assert scenario.statuses["a"] == "SCHEDULED"


def test_a_retry_enters_the_fork_again(clock):
    scenario = Scenario(clock, step("before"), unjoined_fork())
    scenario.worker("before").completes()

    scenario.retry()

    assert (scenario.status, scenario.reason, scenario.statuses) == ("FAILED", UNJOINED, {"before": "COMPLETED"})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("startDelay", "x", "startDelay must be a whole number"),
        ("inputParameters", "x", "inputParameters must be an object"),
        ("subWorkflowParam", "x", "subWorkflowParam must be an object"),
    ],
)
def test_a_task_of_the_list_with_a_field_of_the_wrong_type_fails_the_run_and_is_named(clock, field, value, message):
    right = {"name": "a", "taskReferenceName": "a", "type": "SIMPLE"}
    wrong = {**right, "taskReferenceName": "b", field: value}
    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": [right, wrong], "inputs": {}})

    assert (scenario.status, scenario.statuses) == ("FAILED", {})
    assert scenario.reason.startswith(INVALID)
    assert f"': [1].{message}" in scenario.reason


@pytest.mark.parametrize(("given", "shown"), [("nope", "nope"), (None, "null"), ({"a": 1}, '{"a": 1}')])
def test_an_invalid_list_in_the_deprecated_form_fails_the_run(clock, given, shown):
    fan, joined = dynamic_fork("fan", "joined", {"list": given})
    fan = {key: value for key, value in fan.items() if not key.startswith("dynamicFork")}
    scenario = Scenario(clock, {**fan, "dynamicForkJoinTasksParam": "list"}, joined)

    assert (scenario.status, scenario.statuses) == ("FAILED", {})
    assert scenario.reason == (
        f"Dynamic tasks could not be created. The value of list from task's input {shown} "
        "has no dynamic tasks to be scheduled"
    )


def test_a_reason_contains_no_masked_value(clock):
    tasks = [{"password": "hunter2", "seen": "yes"}]
    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": tasks}, maskedFields=["password"])

    assert scenario.reason == f"""{INVALID} '[{{"password": "***", "seen": "yes"}}]'"""


def test_a_reason_contains_nothing_of_a_completely_masked_input(clock):
    scenario = Scenario(clock, *dynamic_fork(), input={"tasks": "hunter2"}, maskedFields=["tasks"])

    assert scenario.reason == f"{INVALID} '***'"


def test_the_reason_of_a_dynamic_fork_without_a_join_is_the_originals(clock):
    scenario = Scenario(clock, dynamic_fork()[0], input={"tasks": [], "inputs": {}})

    assert (scenario.status, scenario.statuses) == ("FAILED", {})
    assert scenario.reason == (
        "Dynamic join definition is not followed by a join task.  Check the workflow definition."
    )


def test_an_optional_fork_without_a_join_is_skipped_with_its_branches(clock):
    scenario = Scenario(clock, {**unjoined_fork(), "optional": True}, step("after"))

    assert scenario.statuses == {"unjoined": "COMPLETED_WITH_ERRORS", "after": "SCHEDULED"}


def test_a_fork_at_the_end_of_a_case_has_the_join_that_follows_the_switch(clock):
    joined = {"name": "j", "taskReferenceName": "j", "type": "JOIN", "joinOn": ["a", "b"]}
    scenario = Scenario(clock, switch("s", {"left": [unjoined_fork()]}, inputs={"s": "left"}), joined)

    assert (scenario.status, scenario.statuses["a"], scenario.statuses["j"]) == ("RUNNING", "SCHEDULED", "IN_PROGRESS")
