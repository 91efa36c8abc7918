"""FORK_JOIN_DYNAMIC: every form of its input (execution §8.6)."""

import pytest

from conductor_app.core.effects import UpdateRun
from tests.builders import dynamic_fork, loop, noop, plan, simple, step, switch
from tests.core.simulated_run import RunInMemory


def start_run(input: dict, **known) -> RunInMemory:
    return RunInMemory(plan(*dynamic_fork(), step("after")), input, known=known)


def start_run_with_inputs(inputs: dict, **fields) -> RunInMemory:
    return RunInMemory(plan(*dynamic_fork(inputs=inputs, **(fields or {"optional": False})), step("after")))


def test_tasks_and_inputs_can_be_separate_lists():
    tasks = [simple("a", inputs={"n": 0, "own": True}), simple("b")]
    run = start_run({"tasks": tasks, "inputs": {"a": {"n": 1}}})

    assert run.statuses == {"fan": "COMPLETED", "a": "SCHEDULED", "b": "SCHEDULED", "join": "IN_PROGRESS"}
    assert run.task("a").attempt.input == {"n": 1, "own": True}
    task_input = run.task("fan").attempt.input
    assert task_input["forkedTasks"] == ["a", "b"]
    assert [document["taskReferenceName"] for document in task_input["forkedTaskDefs"]] == ["a", "b"]
    assert run.task("join").attempt.input["joinOn"] == ["a", "b"]


def test_the_join_waits_for_all_and_has_their_outputs():
    run = start_run({"tasks": [simple("a"), simple("b")], "inputs": {}}).completes("a", n=1)
    assert run.statuses["join"] == "IN_PROGRESS"

    run.completes("b", n=2)

    assert run.task("join").attempt.output == {"a": {"n": 1}, "b": {"n": 2}}
    assert run.statuses["after"] == "SCHEDULED"


def test_the_join_waits_for_the_case_to_which_a_forked_switch_leads():
    inner = switch("inner", {"on": [simple("x"), simple("y")]})
    outer = switch("outer", {"deep": [simple("w"), inner], "flat": [simple("z")], "none": []})
    workflow_input = {"tasks": [simple("a"), outer], "inputs": {}, "inner": "on"}

    deep = start_run({**workflow_input, "outer": "deep"}).completes("a").completes("w").completes("x")
    assert (deep.statuses["y"], deep.statuses["join"]) == ("SCHEDULED", "IN_PROGRESS")
    deep.completes("y", n=1)
    assert (deep.task("join").attempt.output["y"], deep.statuses["after"]) == ({"n": 1}, "SCHEDULED")

    flat = start_run({**workflow_input, "outer": "flat"}).completes("a")
    assert flat.statuses["join"] == "IN_PROGRESS"
    assert flat.completes("z").statuses["after"] == "SCHEDULED"
    assert start_run({**workflow_input, "outer": "none"}).completes("a").statuses["after"] == "SCHEDULED"


@pytest.mark.parametrize(
    ("inputs", "names", "first"),
    [
        pytest.param(
            {"forkTaskInputs": [{"n": 1}, {"n": 2}], "forkTaskName": "pay"},
            ["_pay_0", "_pay_1"],
            {"n": 1, "__index": 0},
            id="object elements",
        ),
        pytest.param(
            {"forkTaskInputs": ["x"], "forkTaskName": "pay"},
            ["_pay_0"],
            {"input": "x", "__index": 0},
            id="value elements",
        ),
        pytest.param({"forkTaskInputs": [1]}, ["_fan_0"], {"input": 1, "__index": 0}, id="named after the fork"),
        pytest.param(
            {"forkTaskInputs": [{}], "forkTaskType": "HTTP"}, ["_HTTP_0"], {"__index": 0}, id="named after the type"
        ),
    ],
)
def test_one_task_for_each_element(inputs, names, first):
    run = start_run_with_inputs(inputs)

    assert [name for name in run.statuses if name.startswith("_")] == names
    assert run.task(names[0]).attempt.input == first
    run.completes(*names)
    assert run.statuses["after"] == "SCHEDULED"


def test_elements_may_become_sub_workflows():
    child = plan(step("x"), name="child")
    inputs = {"forkTaskInputs": [{"n": 1}], "forkTaskWorkflow": "child", "forkTaskWorkflowVersion": 1}
    run = RunInMemory(plan(*dynamic_fork(inputs=inputs, optional=False)), known={"child": child})

    assert run.statuses["_child_0"] == "IN_PROGRESS"
    assert run.started[0].input == {"n": 1, "__index": 0}


def test_the_deprecated_form_is_understood():
    tasks = {"dynamicTasks": [{"taskName": "pay", "referenceName": "p", "type": "SIMPLE", "input": {"n": 1}}]}
    run = start_run_with_inputs({"all": tasks}, dynamicForkJoinTasksParam="all")

    assert run.task("p").attempt.input == {"n": 1}
    assert run.task("p").attempt.queue == "pay"


def test_a_second_dynamic_fork_with_the_same_task_names_has_distinct_references():
    inputs = {"forkTaskInputs": [1], "forkTaskName": "pay"}
    steps = [*dynamic_fork("one", "j1", inputs, optional=False), *dynamic_fork("two", "j2", inputs, optional=False)]
    run = RunInMemory(plan(*steps)).completes("_pay_0")

    assert run.statuses["_two_pay_0"] == "SCHEDULED"


def test_a_fork_without_tasks_is_joined_immediately():
    assert start_run({"tasks": [], "inputs": {}}).statuses["after"] == "SCHEDULED"


@pytest.mark.parametrize(
    "input",
    [
        pytest.param({"tasks": "none", "inputs": {}}, id="tasks are not a list"),
        pytest.param({"tasks": [1], "inputs": {}}, id="a task is not an object"),
        pytest.param({"tasks": [simple("a")], "inputs": [1]}, id="inputs are not an object"),
        pytest.param({"tasks": [{"name": "a"}], "inputs": {}}, id="a task without a reference"),
        pytest.param(
            {"tasks": [simple("a"), simple("a")], "inputs": {}},
            id="a reference that occurs twice",
        ),
        pytest.param({"tasks": [simple("after")], "inputs": {}}, id="a reference of the definition"),
        pytest.param({"tasks": [simple("join")], "inputs": {}}, id="the reference of its own join"),
        pytest.param(
            {"tasks": [loop("l", step("after"), times=2)], "inputs": {}}, id="a duplicate reference nested in a task"
        ),
        pytest.param({"tasks": [{**simple("a"), "retryCount": "many"}], "inputs": {}}, id="a field of a wrong type"),
        pytest.param({"tasks": [{**simple("a"), "inputParameters": [1]}], "inputs": {}}, id="inputs of a wrong type"),
    ],
)
def test_an_invalid_list_fails_the_run_with_a_reason(input):
    run = start_run(input)

    assert run.status == "FAILED"
    assert run.snapshot.reason


def test_registered_task_definitions_apply_to_forked_tasks():
    run = start_run(
        {"tasks": [simple("a", name="pay")], "inputs": {}},
        pay={"name": "pay", "retryCount": 1, "retryDelaySeconds": 0},
    )

    assert run.fails("a").task("a").attempt.number == 1


def test_an_undefined_forked_task_has_one_attempt():
    assert start_run({"tasks": [simple("a")], "inputs": {}}).fails("a").status == "FAILED"


def test_a_branch_may_be_a_loop():
    run = start_run({"tasks": [loop("l", step("x"), times=2), noop("n")], "inputs": {}}).completes("x__1", "x__2")

    assert run.statuses["after"] == "SCHEDULED"


def test_a_branch_may_be_a_switch():
    branch = switch("way", {"x": [step("a"), step("b")]}, inputs={"case": "x"})
    run = start_run({"tasks": [branch], "inputs": {}}).completes("a", "b", "after")

    assert run.status == "COMPLETED"


def test_a_branch_can_contain_a_dynamic_fork_and_steps_after_its_join():
    inner = dynamic_fork("inner", "meet", {"forkTaskInputs": [1, 2], "forkTaskName": "pay"}, optional=False)
    run = start_run({"tasks": [loop("l", *inner, step("last"), times=1)], "inputs": {}})
    names = [name for name in run.statuses if "pay" in name]

    run.completes(*names)
    assert run.statuses["last__1"] == "SCHEDULED"

    assert run.completes("last__1").statuses["after"] == "SCHEDULED"


def test_a_dynamic_fork_in_a_loop_forks_in_each_iteration():
    steps = dynamic_fork(inputs={"forkTaskInputs": [1], "forkTaskName": "pay"}, optional=False)
    run = RunInMemory(plan(loop("l", *steps, times=2)))

    run.completes("_pay_0__1")
    [second] = [name for name in run.statuses if name.endswith("pay_0__2")]

    assert run.completes(second).status == "COMPLETED"


def test_a_fork_that_failed_can_be_retried():
    run = start_run({"tasks": "none", "inputs": {}})
    run.apply(lambda run, ctx, now: iter([UpdateRun({"input": {"tasks": [simple("a")], "inputs": {}}})]))

    run.retry()

    assert run.statuses["a"] == "SCHEDULED"
    assert run.completes("a").statuses["after"] == "SCHEDULED"
