"""Jumps to a later step (execution §7.2)."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Conflict, NotFound
from tests.builders import definition, dynamic_fork, fork, human, loop, policy, step, sub_workflow, switch, wait
from tests.scenario import Scenario


def test_a_jump_skips_the_steps_in_between(clock):
    scenario = Scenario(clock, step("a"), step("b"), step("c"), step("d"))
    scenario.worker("a").polls()

    scenario.jump("c", why="late")

    assert scenario.statuses == {"a": "SKIPPED", "b": "SKIPPED", "c": "SCHEDULED"}
    assert scenario.task("c").input == {"why": "late"}
    assert scenario.worker("a").completes() is False
    assert scenario.complete("c", "d").status == "COMPLETED"


def test_given_inputs_override_those_of_the_step_in_every_attempt(clock):
    own = {"n": "${workflow.input.n}", "m": "${workflow.input.m}"}
    scenario = Scenario(clock, step("a"), step("b", inputs=own, policy=policy(retries=1)), input={"n": 1, "m": 2})

    scenario.jump("b", n=5, text="as ${written}, $${x}")
    first = scenario.task("b").input
    scenario.worker("b").fails()

    assert first == {"n": 5, "m": 2, "text": "as ${written}, $${x}"}
    assert scenario.task("b").input == first
    assert scenario.attempts("b") == ["FAILED", "SCHEDULED"]


def test_a_jump_out_of_a_fork_leaves_all_its_branches(clock):
    scenario = Scenario(clock, *fork([step("a"), step("b")], [human("c")]), step("d"))

    scenario.jump("d")

    assert scenario.statuses == {
        "fork_join": "COMPLETED", "a": "SKIPPED", "c": "SKIPPED", "join": "SKIPPED", "d": "SCHEDULED",
    }  # fmt: skip
    assert scenario.complete("d").status == "COMPLETED"


def test_a_jump_within_a_branch_does_not_affect_the_others(clock):
    scenario = Scenario(clock, *fork([step("a"), step("b"), step("x")], [step("c")]), step("d"))

    scenario.jump("x")

    assert scenario.statuses == {
        "fork_join": "COMPLETED", "a": "SKIPPED", "c": "SCHEDULED", "join": "IN_PROGRESS", "b": "SKIPPED",
        "x": "SCHEDULED",
    }  # fmt: skip
    assert scenario.complete("x", "c", "d").status == "COMPLETED"


def test_a_jump_into_an_unstarted_fork_starts_its_other_branches(clock):
    scenario = Scenario(clock, step("a"), *fork([step("x"), step("y")], [step("z")]), step("d"))

    scenario.jump("y")

    assert scenario.statuses == {
        "a": "SKIPPED", "fork_join": "COMPLETED", "x": "SKIPPED", "y": "SCHEDULED", "z": "SCHEDULED",
        "join": "IN_PROGRESS",
    }  # fmt: skip
    assert scenario.complete("y", "z", "d").status == "COMPLETED"


def test_a_jump_to_a_join_finds_its_branches_done(clock):
    scenario = Scenario(clock, step("a"), *fork([step("x")], [step("y")]), step("d"))

    scenario.jump("join")

    assert scenario.statuses["join"] == "COMPLETED"
    assert scenario.complete("d").status == "COMPLETED"


def test_a_jump_into_a_case_selects_that_case(clock):
    way = switch("way", {"x": [step("b")], "y": [step("c"), step("e")]})
    scenario = Scenario(clock, step("a"), way, step("d"), input={"way": "x"})

    scenario.jump("e")

    assert scenario.statuses == {"a": "SKIPPED", "way": "COMPLETED", "c": "SKIPPED", "e": "SCHEDULED"}
    assert scenario.task("way").output == {"evaluationResult": ["y"], "selectedCase": "y"}
    assert scenario.complete("e", "d").status == "COMPLETED"


def test_a_jump_into_another_case_leaves_the_chosen_one(clock):
    way = switch("way", {"x": [step("b"), step("f")], "y": [step("c"), step("e")]})
    scenario = Scenario(clock, way, step("d"), input={"way": "x"})

    scenario.jump("c")

    assert scenario.statuses == {"way": "COMPLETED", "b": "SKIPPED", "c": "SCHEDULED"}
    assert scenario.complete("c", "e", "d").status == "COMPLETED"


def test_a_jump_within_a_loop_affects_the_current_iteration(clock):
    scenario = Scenario(clock, loop("l", step("a"), step("b"), times=2), step("d"))

    scenario.jump("b")

    assert scenario.statuses == {"l": "IN_PROGRESS", "a__1": "SKIPPED", "b__1": "SCHEDULED"}
    assert scenario.complete("b", "a", "b", "d").status == "COMPLETED"


def test_a_jump_into_a_loop_starts_its_first_iteration(clock):
    scenario = Scenario(clock, step("x"), loop("l", step("a"), step("b"), times=2))

    scenario.jump("b")

    assert scenario.statuses == {"x": "SKIPPED", "l": "IN_PROGRESS", "a__1": "SKIPPED", "b__1": "SCHEDULED"}
    assert scenario.complete("b", "a", "b").status == "COMPLETED"


def test_a_jump_out_of_a_loop_ends_it(clock):
    scenario = Scenario(clock, loop("l", *fork([step("a")], [step("b")]), times=5), step("d"))

    scenario.jump("d")

    assert set(scenario.statuses.values()) == {"SKIPPED", "COMPLETED", "SCHEDULED"}
    assert scenario.statuses["l"] == "SKIPPED"
    assert scenario.complete("d").status == "COMPLETED"


def test_a_jump_out_of_a_dynamic_fork_leaves_its_branches(clock):
    tasks = [loop("l", step("a"), times=2), step("b")]
    scenario = Scenario(clock, *dynamic_fork(), step("d"), input={"tasks": tasks, "inputs": {}})

    scenario.jump("d")

    assert scenario.statuses == {
        "fan": "COMPLETED", "l": "SKIPPED", "b": "SKIPPED", "join": "SKIPPED", "a__1": "SKIPPED", "d": "SCHEDULED",
    }  # fmt: skip
    assert scenario.complete("d").status == "COMPLETED"


def test_a_jump_terminates_the_children_of_skipped_steps(clock):
    child = definition(step("inner"), name="child")
    scenario = Scenario(clock, sub_workflow("s", "child"), step("d"), others=[child])
    inner = scenario.child("s")

    scenario.jump("d")

    assert (inner.status, scenario.statuses) == ("TERMINATED", {"s": "SKIPPED", "d": "SCHEDULED"})
    assert scenario.complete("d").status == "COMPLETED"


def test_a_jump_to_a_sub_workflow_starts_it(clock):
    scenario = Scenario(clock, step("a"), wait("w", duration="10 s"), step("d"))

    scenario.jump("w", duration="3 s")

    assert scenario.later(3).statuses == {"a": "SKIPPED", "w": "COMPLETED", "d": "SCHEDULED"}


@pytest.mark.parametrize(("ref", "error"), [("a", Conflict), ("b", Conflict), ("nobody", NotFound)])
def test_a_jump_leads_forward_only(clock, ref, error):
    scenario = Scenario(clock, step("a"), step("b"), step("c"))
    scenario.worker("a").completes()

    with pytest.raises(error):
        scenario.jump(ref)


def test_a_jump_to_a_completed_step_is_rejected(clock):
    scenario = Scenario(clock, loop("l", step("a"), step("b"), times=1), step("d"))
    scenario.complete("a", "b")

    with pytest.raises(Conflict, match="already"):
        scenario.jump("b")


def test_a_jump_to_a_skipped_step_is_rejected(clock):
    scenario = Scenario(clock, step("x"), loop("l", step("a"), step("b"), times=1))
    scenario.skip("l")

    with pytest.raises(Conflict, match="skipped"):
        scenario.jump("b")


def test_a_jump_is_recorded_in_the_history(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.jump("b")

    assert AuditEntry.objects.get(object_id=scenario.id, action="jump").reason == "Jump to b."
