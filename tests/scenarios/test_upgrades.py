"""Upgrades of open runs to another version of their definition (execution §7.2)."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Conflict, Invalid, NotFound
from conductor_app.runs.commands import repair as skip_and_jump
from tests.builders import definition, dynamic_fork, fork, human, loop, step, sub_workflow, switch
from tests.scenario import ACTOR, Scenario


def test_tasks_in_both_versions_are_preserved(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a").completes()
    scenario.worker("b").polls()

    scenario.upgrade(step("a"), step("b"), step("c", inputs={"n": "${workflow.input.n}"}), input={"n": 7})

    assert scenario.statuses == {"a": "COMPLETED", "b": "IN_PROGRESS"}
    assert (scenario.row.version, scenario.row.input) == (2, {"n": 7})
    scenario.worker("b").completes()
    assert scenario.task("c").input == {"n": 7}
    assert scenario.complete("c").status == "COMPLETED"


def test_new_steps_before_the_current_one_are_skipped_with_given_outputs(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a").completes()

    forked = fork([step("y")], [step("z")])
    again = step("c", inputs={"seen": "${x.output.n}"})
    scenario.upgrade(step("w"), step("a"), step("x"), *forked, step("b"), again, outputs={"x": {"n": 1}})

    assert scenario.statuses == {
        "a": "COMPLETED", "b": "SCHEDULED", "w": "SKIPPED", "x": "SKIPPED", "fork_join": "SKIPPED", "join": "SKIPPED",
    }  # fmt: skip
    scenario.worker("b").completes()
    assert scenario.task("c").input == {"seen": 1}
    assert scenario.complete("c").status == "COMPLETED"


def test_an_open_task_of_a_removed_step_is_canceled_and_control_continues_before_it(clock):
    scenario = Scenario(clock, step("a"), step("b"), step("d"))
    scenario.worker("a").completes()
    scenario.worker("b").polls()

    scenario.upgrade(step("a"), step("c"), step("d"))

    assert scenario.worker("b").completes() is False
    assert scenario.queue("c") == ["c, attempt 1"]
    assert scenario.complete("c", "d").status == "COMPLETED"


def test_a_run_without_remaining_steps_starts_again(clock):
    scenario = Scenario(clock, step("a"), step("b"))

    scenario.upgrade(step("x"), step("y"))

    assert scenario.queue("x") == ["x, attempt 1"]
    assert scenario.complete("x", "y").status == "COMPLETED"


def test_a_run_that_has_executed_all_remaining_steps_ends(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a").completes()

    scenario.upgrade(step("a"))

    assert scenario.status == "COMPLETED"


def test_the_child_of_a_removed_step_is_terminated(clock):
    scenario = Scenario(clock, sub_workflow("s", "child"), step("d"), others=[definition(step("inner"), name="child")])
    child = scenario.child("s")

    scenario.upgrade(step("d"))

    assert (child.status, scenario.queue("d")) == ("TERMINATED", ["d, attempt 1"])


def test_the_order_of_unreached_steps_can_change(clock):
    scenario = Scenario(clock, step("a"), step("b"), step("c"))

    scenario.upgrade(step("a"), step("c"), step("b"))

    assert scenario.complete("a", "c", "b").status == "COMPLETED"


def test_an_executed_step_that_moved_to_a_later_position_is_not_repeated(clock):
    scenario = Scenario(clock, step("a"), step("b"), step("c"))
    scenario.worker("a").completes()
    scenario.worker("b").completes()

    scenario.upgrade(step("b"), step("a"), step("x"))

    assert scenario.queue("x") == ["x, attempt 1"]
    assert scenario.complete("x").status == "COMPLETED"
    assert scenario.attempts("a") == ["COMPLETED"]


def test_a_branch_is_added_to_a_fork_that_is_waited_for(clock):
    scenario = Scenario(clock, *fork([step("a")], [step("b")]), step("d"))
    scenario.worker("a").completes()

    scenario.upgrade(*fork([step("a")], [step("b")], [step("c")]), step("d"))

    assert scenario.statuses["c"] == "SCHEDULED"
    assert scenario.complete("b").status == "RUNNING"
    assert scenario.queue("d") == []
    assert scenario.complete("c", "d").status == "COMPLETED"


def test_a_branch_grows_longer(clock):
    scenario = Scenario(clock, *fork([step("a")], [step("b")]), step("d"))
    scenario.worker("a").completes()

    scenario.upgrade(*fork([step("a"), step("x")], [step("b")]), step("d"))

    assert scenario.queue("x") == ["x, attempt 1"]
    assert scenario.complete("b", "x", "d").status == "COMPLETED"


def test_a_branch_is_removed_from_a_fork(clock):
    scenario = Scenario(clock, *fork([step("a")], [step("b")]), step("d"))

    scenario.upgrade(*fork([step("a")]), step("d"))

    assert scenario.complete("a", "d").status == "COMPLETED"


def test_a_fork_around_open_tasks_is_removed(clock):
    scenario = Scenario(clock, *fork([step("a"), step("b")]), step("d"))

    scenario.upgrade(step("a"), step("b"), step("d"))

    assert scenario.complete("a", "b", "d").status == "COMPLETED"


def test_a_loop_continues_in_its_iteration_with_its_new_body(clock):
    scenario = Scenario(clock, loop("l", step("a"), step("b"), times=3))
    scenario.complete("a", "b", "a")

    scenario.upgrade(loop("l", step("a"), step("x"), step("b"), times=3))

    assert (scenario.statuses["x__1"], scenario.statuses["x__2"]) == ("SKIPPED", "SKIPPED")
    assert scenario.complete("b", "a", "x", "b").status == "COMPLETED"


def test_a_switch_keeps_its_selected_case(clock):
    scenario = Scenario(clock, switch("way", {"x": [step("a")], "y": [step("b")]}), step("d"), input={"way": "x"})

    scenario.upgrade(switch("way", {"x": [step("c")], "y": [step("b")]}), step("d"))

    assert scenario.complete("c", "d").status == "COMPLETED"


def test_dynamic_branches_continue(clock):
    scenario = Scenario(clock, *dynamic_fork(), step("d"), input={"tasks": [step("x"), step("y")], "inputs": {}})

    scenario.upgrade(*dynamic_fork(), step("e"))

    assert scenario.complete("x", "y", "e").status == "COMPLETED"


def test_dynamic_branches_of_a_removed_fork_are_canceled(clock):
    scenario = Scenario(clock, *dynamic_fork(), step("d"), input={"tasks": [step("x"), step("y")], "inputs": {}})

    scenario.upgrade(step("d"))

    assert scenario.worker("x").polls() == []
    assert scenario.complete("d").status == "COMPLETED"


REFUSED = {
    "it would be in a loop": ([step("a"), step("b")], [loop("l", step("a"), times=2)], "loops"),
    "it would lie in what was not entered": ([step("a")], fork([step("a")], [step("b")]), "not entered"),
    "it is something else": ([human("a")], [step("a")], "changes its type from HUMAN to SIMPLE"),
    "what is over would follow": (
        [step("a"), step("b")],
        [step("b"), step("a")],
        "has ended, but comes after the open b",
    ),
    "both are open": (fork([step("a")], [step("b")]), [step("a"), step("b")], "both open"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_an_impossible_upgrade_is_rejected_with_the_reason(clock, why):
    before, after, said = REFUSED[why]
    scenario = Scenario(clock, *before)
    if why == "what is over would follow":
        scenario.worker("a").completes()
    seen = scenario.statuses

    with pytest.raises(Conflict, match=said):
        scenario.upgrade(*after)

    assert (scenario.statuses, scenario.row.version) == (seen, 1)


def test_a_run_moves_to_versions_of_its_own_definition_only(clock):
    scenario = Scenario(clock, step("a"), others=[definition(step("a"), name="other")])

    with pytest.raises(Invalid, match="another version"):
        skip_and_jump.upgrade_run(scenario.id, "other", 1, ACTOR)
    with pytest.raises(NotFound):
        skip_and_jump.upgrade_run(scenario.id, "order", 9, ACTOR)
    with pytest.raises(NotFound):
        skip_and_jump.upgrade_run("nobody", "order", 1, ACTOR)


@pytest.mark.parametrize("act", ["pause", "terminate"])
def test_only_a_running_run_moves(clock, act):
    scenario = Scenario(clock, step("a"))
    getattr(scenario, act)()

    with pytest.raises(Conflict, match="RUNNING"):
        scenario.upgrade(step("a"), step("b"))


def test_an_upgrade_can_be_previewed(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a").completes()
    scenario.upgrade(step("a"), step("b"), version=3)
    Scenario(clock, step("x"), step("a"), step("c"), version=2)

    plan = skip_and_jump.plan_upgrade(scenario.id, "order", 2)

    assert [[str(key) for key in keys] for keys in (plan.kept, plan.completed, plan.canceled)] == [["a"], ["x"], ["b"]]
    assert plan.problems == ()
    assert scenario.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}


def test_timeouts_restart_with_the_limits_of_the_new_version(clock):
    scenario = Scenario(clock, step("a"))
    scenario.later(100)

    scenario.upgrade(step("a"), step("b"))

    assert scenario.row.last_retried_at == clock.now()
    assert AuditEntry.objects.get(object_id=scenario.id, action="upgrade").reason == "Move to version 2."
