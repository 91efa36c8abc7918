"""A run that is under way moves to another version of its definition (execution §7.2)."""

import pytest

from conductor_app.core.errors import Conflict, Invalid, NotFound
from conductor_app.engine.runs import skip_and_jump
from conductor_app.models import AuditEntry
from tests.builders import definition, dynamic_fork, fork, human, loop, step, sub_workflow, switch
from tests.story import ACTOR, Story


def finish(story: Story, *task_types: str) -> str:
    for task_type in task_types:
        story.worker(task_type).completes()
    return story.status


def test_tasks_in_both_versions_are_preserved(clock):
    story = Story(clock, step("a"), step("b"))
    story.worker("a").completes()
    story.worker("b").polls()

    story.upgrade(step("a"), step("b"), step("c", inputs={"n": "${workflow.input.n}"}), input={"n": 7})

    assert story.statuses == {"a": "COMPLETED", "b": "IN_PROGRESS"}
    assert (story.row.version, story.row.input) == (2, {"n": 7})
    story.worker("b").completes()
    assert story.task("c").input == {"n": 7}
    assert finish(story, "c") == "COMPLETED"


def test_new_steps_before_the_current_one_are_skipped_with_given_outputs(clock):
    story = Story(clock, step("a"), step("b"))
    story.worker("a").completes()

    forked = fork([step("y")], [step("z")])
    again = step("c", inputs={"seen": "${x.output.n}"})
    story.upgrade(step("w"), step("a"), step("x"), *forked, step("b"), again, outputs={"x": {"n": 1}})

    assert story.statuses == {
        "a": "COMPLETED", "b": "SCHEDULED", "w": "SKIPPED", "x": "SKIPPED", "fork_join": "SKIPPED", "join": "SKIPPED",
    }  # fmt: skip
    story.worker("b").completes()
    assert story.task("c").input == {"seen": 1}
    assert finish(story, "c") == "COMPLETED"


def test_an_open_task_of_a_removed_step_is_canceled_and_control_continues_before_it(clock):
    story = Story(clock, step("a"), step("b"), step("d"))
    story.worker("a").completes()
    story.worker("b").polls()

    story.upgrade(step("a"), step("c"), step("d"))

    assert story.worker("b").completes() is False
    assert story.queue("c") == ["c, attempt 1"]
    assert finish(story, "c", "d") == "COMPLETED"


def test_a_run_without_remaining_steps_starts_again(clock):
    story = Story(clock, step("a"), step("b"))

    story.upgrade(step("x"), step("y"))

    assert story.queue("x") == ["x, attempt 1"]
    assert finish(story, "x", "y") == "COMPLETED"


def test_a_run_that_has_executed_all_remaining_steps_ends(clock):
    story = Story(clock, step("a"), step("b"))
    story.worker("a").completes()

    story.upgrade(step("a"))

    assert story.status == "COMPLETED"


def test_the_child_of_a_removed_step_is_terminated(clock):
    story = Story(clock, sub_workflow("s", "child"), step("d"), others=[definition(step("inner"), name="child")])
    child = story.child("s")

    story.upgrade(step("d"))

    assert (child.status, story.queue("d")) == ("TERMINATED", ["d, attempt 1"])


def test_the_order_of_unreached_steps_can_change(clock):
    story = Story(clock, step("a"), step("b"), step("c"))

    story.upgrade(step("a"), step("c"), step("b"))

    assert finish(story, "a", "c", "b") == "COMPLETED"


def test_an_executed_step_that_moved_to_a_later_position_is_not_repeated(clock):
    story = Story(clock, step("a"), step("b"), step("c"))
    story.worker("a").completes()
    story.worker("b").completes()

    story.upgrade(step("b"), step("a"), step("x"))

    assert story.queue("x") == ["x, attempt 1"]
    assert finish(story, "x") == "COMPLETED"
    assert story.attempts("a") == ["COMPLETED"]


def test_a_branch_is_added_to_a_fork_that_is_waited_for(clock):
    story = Story(clock, *fork([step("a")], [step("b")]), step("d"))
    story.worker("a").completes()

    story.upgrade(*fork([step("a")], [step("b")], [step("c")]), step("d"))

    assert story.statuses["c"] == "SCHEDULED"
    assert finish(story, "b") == "RUNNING"
    assert story.queue("d") == []
    assert finish(story, "c", "d") == "COMPLETED"


def test_a_branch_grows_longer(clock):
    story = Story(clock, *fork([step("a")], [step("b")]), step("d"))
    story.worker("a").completes()

    story.upgrade(*fork([step("a"), step("x")], [step("b")]), step("d"))

    assert story.queue("x") == ["x, attempt 1"]
    assert finish(story, "b", "x", "d") == "COMPLETED"


def test_a_branch_is_removed_from_a_fork(clock):
    story = Story(clock, *fork([step("a")], [step("b")]), step("d"))

    story.upgrade(*fork([step("a")]), step("d"))

    assert finish(story, "a", "d") == "COMPLETED"


def test_a_fork_around_open_tasks_is_removed(clock):
    story = Story(clock, *fork([step("a"), step("b")]), step("d"))

    story.upgrade(step("a"), step("b"), step("d"))

    assert finish(story, "a", "b", "d") == "COMPLETED"


def test_a_loop_continues_in_its_iteration_with_its_new_body(clock):
    story = Story(clock, loop("l", step("a"), step("b"), times=3))
    finish(story, "a", "b", "a")

    story.upgrade(loop("l", step("a"), step("x"), step("b"), times=3))

    assert (story.statuses["x__1"], story.statuses["x__2"]) == ("SKIPPED", "SKIPPED")
    assert finish(story, "b", "a", "x", "b") == "COMPLETED"


def test_a_switch_keeps_its_selected_case(clock):
    story = Story(clock, switch("way", {"x": [step("a")], "y": [step("b")]}), step("d"), input={"way": "x"})

    story.upgrade(switch("way", {"x": [step("c")], "y": [step("b")]}), step("d"))

    assert finish(story, "c", "d") == "COMPLETED"


def test_dynamic_branches_continue(clock):
    story = Story(clock, *dynamic_fork(), step("d"), input={"tasks": [step("x"), step("y")], "inputs": {}})

    story.upgrade(*dynamic_fork(), step("e"))

    assert finish(story, "x", "y", "e") == "COMPLETED"


def test_dynamic_branches_of_a_removed_fork_are_canceled(clock):
    story = Story(clock, *dynamic_fork(), step("d"), input={"tasks": [step("x"), step("y")], "inputs": {}})

    story.upgrade(step("d"))

    assert story.worker("x").polls() == []
    assert finish(story, "d") == "COMPLETED"


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
    story = Story(clock, *before)
    if why == "what is over would follow":
        story.worker("a").completes()
    seen = story.statuses

    with pytest.raises(Conflict, match=said):
        story.upgrade(*after)

    assert (story.statuses, story.row.version) == (seen, 1)


def test_a_run_moves_to_versions_of_its_own_definition_only(clock):
    story = Story(clock, step("a"), others=[definition(step("a"), name="other")])

    with pytest.raises(Invalid, match="another version"):
        skip_and_jump.upgrade_run(story.id, "other", 1, ACTOR)
    with pytest.raises(NotFound):
        skip_and_jump.upgrade_run(story.id, "order", 9, ACTOR)
    with pytest.raises(NotFound):
        skip_and_jump.upgrade_run("nobody", "order", 1, ACTOR)


@pytest.mark.parametrize("act", ["pause", "terminate"])
def test_only_a_running_run_moves(clock, act):
    story = Story(clock, step("a"))
    getattr(story, act)()

    with pytest.raises(Conflict, match="RUNNING"):
        story.upgrade(step("a"), step("b"))


def test_an_upgrade_can_be_previewed(clock):
    story = Story(clock, step("a"), step("b"))
    story.worker("a").completes()
    story.upgrade(step("a"), step("b"), version=3)
    Story(clock, step("x"), step("a"), step("c"), version=2)

    plan = skip_and_jump.plan_upgrade(story.id, "order", 2)

    assert [[str(key) for key in keys] for keys in (plan.kept, plan.completed, plan.canceled)] == [["a"], ["x"], ["b"]]
    assert plan.problems == ()
    assert story.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}


def test_timeouts_restart_with_the_limits_of_the_new_version(clock):
    story = Story(clock, step("a"))
    story.later(100)

    story.upgrade(step("a"), step("b"))

    assert story.row.last_retried_at == clock.now()
    assert AuditEntry.objects.get(object_id=story.id, action="upgrade").reason == "Move to version 2."
