"""Going on at a step further on (execution §7.2)."""

import pytest

from conductor_app.core.errors import Conflict, NotFound
from conductor_app.models import AuditEntry
from tests.builders import definition, dynamic_fork, fork, human, loop, policy, step, sub_workflow, switch, wait
from tests.story import Story


def finish(story: Story, *task_types: str) -> str:
    for task_type in task_types:
        story.worker(task_type).completes()
    return story.status


def test_a_jump_skips_the_steps_in_between(clock):
    story = Story(clock, step("a"), step("b"), step("c"), step("d"))
    story.worker("a").polls()

    story.jump("c", why="late")

    assert story.statuses == {"a": "SKIPPED", "b": "SKIPPED", "c": "SCHEDULED"}
    assert story.task("c").input == {"why": "late"}
    assert story.worker("a").completes() is False
    assert finish(story, "c", "d") == "COMPLETED"


def test_given_inputs_override_those_of_the_step_in_every_attempt(clock):
    own = {"n": "${workflow.input.n}", "m": "${workflow.input.m}"}
    story = Story(clock, step("a"), step("b", inputs=own, policy=policy(retries=1)), input={"n": 1, "m": 2})

    story.jump("b", n=5, text="as ${written}, $${x}")
    first = story.task("b").input
    story.worker("b").fails()

    assert first == {"n": 5, "m": 2, "text": "as ${written}, $${x}"}
    assert story.task("b").input == first
    assert story.attempts("b") == ["FAILED", "SCHEDULED"]


def test_a_jump_out_of_a_fork_leaves_all_its_branches(clock):
    story = Story(clock, *fork([step("a"), step("b")], [human("c")]), step("d"))

    story.jump("d")

    assert story.statuses == {
        "fork_join": "COMPLETED", "a": "SKIPPED", "c": "SKIPPED", "join": "SKIPPED", "d": "SCHEDULED",
    }  # fmt: skip
    assert finish(story, "d") == "COMPLETED"


def test_a_jump_within_a_branch_does_not_affect_the_others(clock):
    story = Story(clock, *fork([step("a"), step("b"), step("x")], [step("c")]), step("d"))

    story.jump("x")

    assert story.statuses == {
        "fork_join": "COMPLETED", "a": "SKIPPED", "c": "SCHEDULED", "join": "IN_PROGRESS", "b": "SKIPPED",
        "x": "SCHEDULED",
    }  # fmt: skip
    assert finish(story, "x", "c", "d") == "COMPLETED"


def test_a_jump_into_an_unstarted_fork_starts_its_other_branches(clock):
    story = Story(clock, step("a"), *fork([step("x"), step("y")], [step("z")]), step("d"))

    story.jump("y")

    assert story.statuses == {
        "a": "SKIPPED", "fork_join": "COMPLETED", "x": "SKIPPED", "y": "SCHEDULED", "z": "SCHEDULED",
        "join": "IN_PROGRESS",
    }  # fmt: skip
    assert finish(story, "y", "z", "d") == "COMPLETED"


def test_a_jump_to_a_join_finds_its_branches_done(clock):
    story = Story(clock, step("a"), *fork([step("x")], [step("y")]), step("d"))

    story.jump("join")

    assert story.statuses["join"] == "COMPLETED"
    assert finish(story, "d") == "COMPLETED"


def test_a_jump_into_a_case_selects_that_case(clock):
    way = switch("way", {"x": [step("b")], "y": [step("c"), step("e")]})
    story = Story(clock, step("a"), way, step("d"), input={"way": "x"})

    story.jump("e")

    assert story.statuses == {"a": "SKIPPED", "way": "COMPLETED", "c": "SKIPPED", "e": "SCHEDULED"}
    assert story.task("way").output == {"evaluationResult": ["y"], "selectedCase": "y"}
    assert finish(story, "e", "d") == "COMPLETED"


def test_a_jump_into_another_case_leaves_the_chosen_one(clock):
    way = switch("way", {"x": [step("b"), step("f")], "y": [step("c"), step("e")]})
    story = Story(clock, way, step("d"), input={"way": "x"})

    story.jump("c")

    assert story.statuses == {"way": "COMPLETED", "b": "SKIPPED", "c": "SCHEDULED"}
    assert finish(story, "c", "e", "d") == "COMPLETED"


def test_a_jump_within_a_loop_affects_the_current_iteration(clock):
    story = Story(clock, loop("l", step("a"), step("b"), times=2), step("d"))

    story.jump("b")

    assert story.statuses == {"l": "IN_PROGRESS", "a__1": "SKIPPED", "b__1": "SCHEDULED"}
    assert finish(story, "b", "a", "b", "d") == "COMPLETED"


def test_a_jump_into_a_loop_starts_its_first_iteration(clock):
    story = Story(clock, step("x"), loop("l", step("a"), step("b"), times=2))

    story.jump("b")

    assert story.statuses == {"x": "SKIPPED", "l": "IN_PROGRESS", "a__1": "SKIPPED", "b__1": "SCHEDULED"}
    assert finish(story, "b", "a", "b") == "COMPLETED"


def test_a_jump_out_of_a_loop_ends_it(clock):
    story = Story(clock, loop("l", *fork([step("a")], [step("b")]), times=5), step("d"))

    story.jump("d")

    assert set(story.statuses.values()) == {"SKIPPED", "COMPLETED", "SCHEDULED"}
    assert story.statuses["l"] == "SKIPPED"
    assert finish(story, "d") == "COMPLETED"


def test_a_jump_out_of_a_dynamic_fork_leaves_its_branches(clock):
    tasks = [loop("l", step("a"), times=2), step("b")]
    story = Story(clock, *dynamic_fork(), step("d"), input={"tasks": tasks, "inputs": {}})

    story.jump("d")

    assert story.statuses == {
        "fan": "COMPLETED", "l": "SKIPPED", "b": "SKIPPED", "join": "SKIPPED", "a__1": "SKIPPED", "d": "SCHEDULED",
    }  # fmt: skip
    assert finish(story, "d") == "COMPLETED"


def test_a_jump_terminates_the_children_of_skipped_steps(clock):
    child = definition(step("inner"), name="child")
    story = Story(clock, sub_workflow("s", "child"), step("d"), others=[child])
    inner = story.child("s")

    story.jump("d")

    assert (inner.status, story.statuses) == ("TERMINATED", {"s": "SKIPPED", "d": "SCHEDULED"})
    assert finish(story, "d") == "COMPLETED"


def test_a_jump_to_a_sub_workflow_starts_it(clock):
    story = Story(clock, step("a"), wait("w", duration="10 s"), step("d"))

    story.jump("w", duration="3 s")

    assert story.later(3).statuses == {"a": "SKIPPED", "w": "COMPLETED", "d": "SCHEDULED"}


@pytest.mark.parametrize(("ref", "error"), [("a", Conflict), ("b", Conflict), ("nobody", NotFound)])
def test_a_jump_leads_forward_only(clock, ref, error):
    story = Story(clock, step("a"), step("b"), step("c"))
    story.worker("a").completes()

    with pytest.raises(error):
        story.jump(ref)


def test_a_jump_to_a_completed_step_is_rejected(clock):
    story = Story(clock, loop("l", step("a"), step("b"), times=1), step("d"))
    finish(story, "a", "b")

    with pytest.raises(Conflict, match="already"):
        story.jump("b")


def test_a_jump_to_a_skipped_step_is_rejected(clock):
    story = Story(clock, step("x"), loop("l", step("a"), step("b"), times=1))
    story.skip("l")

    with pytest.raises(Conflict, match="skipped"):
        story.jump("b")


def test_a_jump_is_recorded_in_the_history(clock):
    story = Story(clock, step("a"), step("b"))
    story.jump("b")

    assert AuditEntry.objects.get(object_id=story.id, action="jump").reason == "Jump to b."
