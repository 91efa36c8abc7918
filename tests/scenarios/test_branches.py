"""Branches and loops in the database: a report reads only rows near its task."""

import pytest

from conductor_app.runs.commands import control
from tests.builders import (
    definition,
    dynamic_fork,
    exclusive_join,
    fork,
    inline,
    join,
    loop,
    noop,
    policy,
    set_variable,
    simple,
    step,
    sub_workflow,
    switch,
)
from tests.scenario import ACTOR, Scenario, run_commit_hooks

SHAPES = {
    "a loop at the end of a branch": ([*fork([loop("l", step("a"), times=2)], [step("b")]), step("z")], "b a a"),
    "a step that is over at once at the end of a branch": ([*fork([step("a"), noop("n")]), step("z")], "a"),
    "a join within a branch": ([*fork(fork([step("a")], [step("b")], join="in"), [step("c")]), step("z")], "c a b"),
    "a switch at the end of a branch": (
        [*fork([step("a"), switch("w", {"x": [noop("n")]}, inputs={"case": "x"})]), step("z")],
        "a",
    ),
    "a loop in a loop": ([loop("o", loop("i", step("a"), times=2), step("b"), times=2), step("z")], "a a b a a b"),
    "a fork in a loop": ([loop("l", *fork([step("a")], [step("b")]), times=2), step("z")], "a b b a"),
    "a loop in a fork in a loop": (
        [loop("o", *fork([loop("i", step("a"), times=2)], [step("b")]), times=2), step("z")],
        "a b a a a b",
    ),
    "a loop that keeps few turns": (
        [loop("l", step("a"), step("b"), times=3, inputs={"keepLastN": 1}), step("z")],
        "a b a b a b",
    ),
    "two joins over one task": (
        [*fork([step("a")], [step("b")], join="j1"), join("j2", ["a", "b"]), step("z")],
        "a b",
    ),
    "two joins that wait at the same time": (
        [*fork([step("a")], [step("b")], [join("early", ["a", "b"]), step("c")], join="j1", on=["a", "c"]), step("z")],
        "a b c",
    ),
    "an exclusive join over a case": (
        [switch("w", {"x": [step("a")]}, inputs={"case": "x"}), exclusive_join("e", ["a"]), step("z")],
        "a",
    ),
}


@pytest.mark.parametrize(("steps", "order"), SHAPES.values(), ids=SHAPES)
def test_control_continues_after_the_join(clock, steps, order):
    scenario = Scenario(clock, *steps).complete(*order.split())

    assert scenario.is_waiting_for("z"), scenario.statuses
    assert scenario.complete("z").status == "COMPLETED"


def test_branches_are_dispatched_in_order_and_again_after_a_retry_of_the_run(clock):
    same = [[step(f"b{number}", "same")] for number in range(12)]
    scenario = Scenario(clock, *fork(*same))
    order = [f"b{number}" for number in range(12)]

    assert scenario.worker("same").polls(count=12) == order
    scenario.terminate()
    scenario.retry()
    assert scenario.worker("same").polls(count=12) == order


FORKED = {
    "a loop": (loop("l", step("a"), step("b"), times=2), "a b a b"),
    "a loop in a loop": (loop("o", loop("i", step("a"), times=2), step("b"), times=2), "a a b a a b"),
    "a switch": (switch("w", {"x": [step("a"), step("b")]}, inputs={"case": "x"}), "a b"),
    "a switch with a loop": (
        switch("w", {"x": [loop("l", step("a"), times=2), step("b")]}, inputs={"case": "x"}),
        "a a b",
    ),
    "a loop with a fork": (loop("l", *fork([step("a")], [step("b")], join="in"), step("c"), times=2), "a b c b a c"),
    "a dynamic fork in a loop, and a step after its join": (
        loop(
            "l",
            *dynamic_fork("f", "in", {"tasks": [simple("a"), simple("b")], "inputs": {}}),
            step("c"),
            times=1,
        ),
        "a b c",
    ),
}


@pytest.mark.parametrize(("branch", "order"), FORKED.values(), ids=FORKED)
def test_a_dynamic_branch_reaches_its_join(clock, branch, order):
    forked = dynamic_fork(inputs={"tasks": [branch, step("other")], "inputs": {}})
    scenario = Scenario(clock, *forked, step("z")).complete("other", *order.split())

    assert scenario.is_waiting_for("z"), scenario.statuses


@pytest.mark.parametrize("order", ["axyb", "xyab", "baxy"])
def test_a_dynamic_branch_that_is_a_switch_reaches_its_join_through_its_case(clock, order):
    branch = switch("way", {"on": [simple("x"), simple("y")]}, inputs={"way": "on"})
    forked = dynamic_fork(inputs={"tasks": [branch, simple("a")], "inputs": {}})
    scenario = Scenario(clock, *fork([*forked, step("next")], [step("b")], join="end"), step("last"))

    for at, worker in enumerate(order):
        assert scenario.statuses.get("next") == ("SCHEDULED" if {*"axy"} <= {*order[:at]} else None)
        scenario.worker(worker).completes()
    scenario.worker("next").completes()

    assert list(scenario.task("join").output) == ["way"]
    assert scenario.statuses["last"] == "SCHEDULED"


def test_expressions_resolve_outputs_of_dynamic_branches(clock):
    branch = switch("w", {"x": [step("a"), step("b")]}, inputs={"case": "x"})
    seen = step("z", inputs={"n": "${a.output.n}", "status": "${b.status}"})
    scenario = Scenario(
        clock, *dynamic_fork(inputs={"tasks": [branch], "inputs": {}}), step("y"), fork([seen], join="end")
    )
    scenario.worker("a").completes(n=1)
    scenario.complete("b", "y")

    assert scenario.task("z").input == {"n": 1, "status": "COMPLETED"}


def test_a_second_dynamic_fork_uses_references_of_its_own(clock):
    inputs = {"forkTaskInputs": [1, 2], "forkTaskName": "pay"}
    forks = [*dynamic_fork("one", "j1", inputs, optional=False), *dynamic_fork("two", "j2", inputs, optional=False)]
    scenario = Scenario(clock, *forks, step("z"), tasks=[policy("pay")]).complete(*["pay"] * 4)

    assert {"_pay_0", "_pay_1", "_two_pay_0", "_two_pay_1"} <= set(scenario.statuses)
    assert scenario.is_waiting_for("z")


def test_a_second_dynamic_fork_of_the_same_tasks_fails_with_a_reason(clock):
    inputs = {"tasks": [simple("a")], "inputs": {}}
    scenario = Scenario(clock, *dynamic_fork("one", "j1", inputs), *dynamic_fork("two", "j2", inputs))

    scenario.complete("a")

    assert scenario.status == "FAILED"
    assert "already in use" in scenario.reason


def test_a_dynamic_fork_in_a_loop_forks_in_each_iteration(clock):
    steps = dynamic_fork(inputs={"forkTaskInputs": [1, 2], "forkTaskName": "pay"}, optional=False)
    scenario = Scenario(clock, loop("l", *steps, times=3), step("z"), tasks=[policy("pay")]).complete(*["pay"] * 6)

    assert scenario.is_waiting_for("z")


def test_a_permissive_task_that_was_forked_dynamically_fails_the_run_at_its_end(clock):
    forked = dynamic_fork(inputs={"tasks": [step("a", permissive=True)], "inputs": {}})
    scenario = Scenario(clock, *forked, step("z"))
    scenario.worker("a").fails("no luck")

    assert (scenario.status, "no luck" in scenario.reason) == ("FAILED", True)


@pytest.mark.parametrize("mood", [{"optional": True}, {"permissive": True}])
def test_an_optional_failure_lets_the_run_continue(clock, mood):
    scenario = Scenario(clock, step("a", **mood), step("b"), step("c"))
    scenario.worker("a").fails("no luck")
    scenario.complete("b")
    assert scenario.status == "RUNNING"

    scenario.complete("c")

    assert scenario.status == ("COMPLETED" if "optional" in mood else "FAILED")


def test_tasks_that_run_out_of_time_together_end_their_run_together(clock):
    branches = [[step(ref, policy=policy(poll_seconds=30))] for ref in "abc"]
    scenario = Scenario(clock, *fork(*branches))

    assert scenario.at(29).status == "RUNNING"
    assert scenario.at(30).status == "TIMED_OUT"
    assert sorted(scenario.statuses.values()) == ["CANCELED", "CANCELED", "CANCELED", "COMPLETED", "TIMED_OUT"]


def test_a_first_step_may_name_anything_of_its_run(clock):
    names = ("input", "output", "variables", "status", "nonsense", "secrets.KEY", "env.NAME")
    scenario = Scenario(clock, step("a", inputs={name: f"${{workflow.{name}}}" for name in names}))

    assert scenario.task("a").input["status"] == "RUNNING"


def test_later_steps_resolve_variables(clock):
    steps = [step("a"), set_variable("s", n="${a.output.n}"), step("b", inputs={"n": "${workflow.variables.n}"})]
    scenario = Scenario(clock, *steps, variables={"other": 1})
    scenario.worker("a").completes(n=7)

    assert scenario.task("b").input == {"n": 7}
    assert scenario.row.variables == {"other": 1, "n": 7}


def test_a_script_reads_the_outputs_of_earlier_tasks(clock):
    added = inline("sum", "$.one + $.two", inputs={"one": "${a.output.n}", "two": 2})
    scenario = Scenario(clock, step("a"), added, step("b"))
    scenario.worker("a").completes(n=40)

    assert scenario.task("sum").output == {"result": 42}


def test_a_child_that_is_removed_while_it_runs_is_a_canceled_task(clock):
    scenario = Scenario(clock, sub_workflow("s"), others=[definition(step("x"), name="child")])

    with run_commit_hooks():
        control.remove_run(scenario.child("s").id, ACTOR, archive=False)
    scenario.later(1)

    assert (scenario.statuses["s"], scenario.status) == ("CANCELED", "TERMINATED")


@pytest.mark.parametrize("order", ["b d", "d b"])
def test_a_join_does_not_wait_for_tasks_of_an_unselected_case(clock, order):
    way = switch("w", {"x": [step("a")]}, [step("d")], inputs={"case": "y"})
    scenario = Scenario(clock, *fork([way], [step("b")], on=["a", "b"]), step("z")).complete(*order.split())

    assert (scenario.status, "no open task leads to" in scenario.reason) == ("FAILED", True)
