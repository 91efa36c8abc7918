"""Runs that are opened again below others: who waited for them waits again (execution §7.3, §7.4, §7.6, §11 37, 38)."""

from collections.abc import Callable

import pytest

from conductor_app.core.errors import Conflict, Invalid
from conductor_app.engine.delivery import deliver
from conductor_app.engine.runs import run_commands
from conductor_app.models import Message, Run, TaskLog
from tests.builders import (
    definition,
    dynamic_fork,
    fork,
    human,
    loop,
    policy,
    step,
    sub_workflow,
    switch,
    terminate,
)
from tests.engine.views import row_violations
from tests.story import RunView, Story, run_commit_hooks

LEAF = definition(step("x"), step("y"), name="leaf")
MIDDLE = definition(sub_workflow("below", "leaf"), step("m"), name="middle")


def root(clock, *steps, **fields) -> Story:
    return Story(clock, *(steps or [sub_workflow("s", "middle"), step("r")]), others=[LEAF, MIDDLE], **fields)


def middle_of(story: Story) -> RunView:
    return story.child("s")


def leaf_of(story: Story) -> RunView:
    return middle_of(story).child("below")


def statuses(story: Story) -> list[str]:
    return [run.status for run in (story, middle_of(story), leaf_of(story))]


def done(story: Story, *task_types: str) -> None:
    for task_type in task_types:
        story.worker(task_type).completes(by=task_type)


def all_is_well(*runs: RunView) -> None:
    assert [each for run in runs for each in row_violations(run.id)] == []


def test_a_resuming_retry_descends_to_the_first_failed_task(clock):
    story = root(clock)
    done(story, "x")
    story.worker("y").fails()
    leaf = leaf_of(story)
    assert statuses(story) == ["FAILED"] * 3

    story.retry(resume_children=True)

    assert leaf_of(story).id == leaf.id
    assert statuses(story) == ["RUNNING"] * 3
    assert leaf.attempts("y") == ["FAILED", "SCHEDULED"]
    assert (story.statuses["s"], middle_of(story).statuses["below"]) == ("IN_PROGRESS", "IN_PROGRESS")
    assert (story.reason, story.row.failed_refs) == ("", [])
    done(story, "y", "m", "r")
    assert statuses(story) == ["COMPLETED"] * 3
    all_is_well(story, middle_of(story), leaf)


def test_a_retry_that_does_not_resume_starts_a_new_child(clock):
    story = root(clock)
    story.worker("x").fails()
    first = middle_of(story).id

    story.retry()

    assert middle_of(story).id != first
    assert Run.objects.get(pk=first).status == "FAILED"


def test_a_resuming_retry_stops_at_a_task_that_failed_itself(clock):
    story = root(clock, step("a"), sub_workflow("s", "middle"))
    story.worker("a").fails()

    story.retry(resume_children=True)

    assert story.statuses == {"a": "SCHEDULED"}


def test_a_resuming_retry_prefers_failed_tasks_to_canceled_ones(clock):
    story = root(clock, *fork([sub_workflow("one", "leaf")], [sub_workflow("two", "leaf")]))
    one, two = story.child("one"), story.child("two")
    story.worker("x").polls()
    failed = RunView(story.worker("x").held.run_id)
    story.worker("x").fails()
    other = one if failed.id == two.id else two
    assert (failed.status, other.status) == ("FAILED", "TERMINATED")

    story.retry(resume_children=True)

    assert failed.status == "RUNNING"
    assert {story.statuses["one"], story.statuses["two"]} == {"IN_PROGRESS"}


OPENED: dict[str, Callable[[RunView], None]] = {
    "retried": lambda run: run.retry(),
    "restarted": lambda run: run.restart(),
    "rerun from its start": lambda run: run.rerun(),
    "rerun from a task": lambda run: run.rerun("y"),
}


@pytest.mark.parametrize("opens", OPENED.values(), ids=OPENED)
def test_all_ancestors_wait_again_for_a_continued_run(clock, opens):
    story = root(clock)
    done(story, "x")
    story.worker("y").fails()
    leaf = leaf_of(story)

    clock.advance(seconds=9)
    opens(leaf)

    assert statuses(story) == ["RUNNING"] * 3
    assert middle_of(story).task("below").child_id == leaf.id
    if leaf.statuses == {"x": "SCHEDULED"}:
        done(story, "x")
    done(story, "y", "m", "r")
    assert statuses(story) == ["COMPLETED"] * 3
    assert story.row.last_retried_at == clock.now()
    all_is_well(story, middle_of(story), leaf)


def test_the_task_that_waits_again_has_a_reason(clock):
    story = root(clock)
    story.worker("x").fails()

    leaf_of(story).restart()

    lines = TaskLog.objects.filter(attempt_id=middle_of(story).task("below").id)
    assert [line.line for line in lines] == [f"Sub workflow {leaf_of(story).id} was restarted."]


def test_tasks_canceled_with_the_child_resume(clock):
    beside = [sub_workflow("other", "leaf")]
    steps = [*fork([sub_workflow("s", "middle")], [step("a")], [human("h")], beside), step("z")]
    story = root(clock, *steps)
    other = story.child("other")
    story.worker("x").polls()
    held = RunView(story.worker("x").held.run_id)
    if held.id == other.id:
        story.worker("x", "second").polls()
        story.worker("x", "second").fails()
    else:
        story.worker("x").fails()
    assert story.status == "FAILED"
    assert {story.statuses[ref] for ref in ("a", "h", "other", "join")} == {"CANCELED"}
    assert other.status == "TERMINATED"

    leaf_of(story).retry()

    assert (story.statuses["s"], story.statuses["a"], story.statuses["h"], story.statuses["join"]) == (
        "IN_PROGRESS", "SCHEDULED", "IN_PROGRESS", "IN_PROGRESS",
    )  # fmt: skip
    assert story.attempts("other") == ["IN_PROGRESS"]
    assert story.child("other").id == other.id
    for worker in ("one", "two"):
        story.worker("x", worker).completes()
        story.worker("y", worker).completes()
    done(story, "m", "a")
    story.reports("h")
    done(story, "z")
    assert story.status == "COMPLETED"
    all_is_well(story, middle_of(story))


def test_other_failed_tasks_of_the_parent_are_retried(clock):
    story = root(clock, *fork([sub_workflow("s", "leaf")], [step("a")]))
    story.worker("a").fails()
    assert (story.statuses["s"], story.child("s").status) == ("CANCELED", "TERMINATED")

    story.child("s").retry()

    assert (story.status, story.statuses["s"], story.statuses["a"]) == ("RUNNING", "IN_PROGRESS", "SCHEDULED")


def test_a_surrounding_loop_continues_in_its_iteration(clock):
    story = root(clock, loop("l", sub_workflow("s", "leaf"), step("a"), times=2))
    done(story, "x", "y", "a", "x")
    story.worker("y").fails()

    story.child("s__2").retry()

    assert (story.statuses["l"], story.statuses["s__2"]) == ("IN_PROGRESS", "IN_PROGRESS")
    done(story, "y", "a")
    assert story.status == "COMPLETED"
    all_is_well(story)


def test_a_child_of_a_dynamic_fork_is_retried(clock):
    inputs = {"forkTaskInputs": [{"n": 1}, {"n": 2}], "forkTaskWorkflow": "leaf"}
    story = root(clock, *dynamic_fork(inputs=inputs, optional=False), step("z"))
    for worker in ("one", "two"):
        story.worker("x", worker).completes()
    story.worker("y").fails()
    failed = next(ref for ref, status in story.statuses.items() if status == "FAILED")

    story.child(failed).retry()
    assert story.status == "RUNNING"

    # The other one was terminated with its parent, and resumes: its first task stays completed.
    done(story, "y", "y", "z")
    assert story.status == "COMPLETED"
    all_is_well(story)


def test_a_paused_parent_stays_paused(clock):
    story = root(clock)
    middle = middle_of(story)
    middle.pause()
    story.worker("x").fails()
    assert (middle.status, middle.statuses["below"]) == ("PAUSED", "FAILED")

    leaf_of(story).retry()
    assert (middle.status, middle.statuses["below"], story.status) == ("PAUSED", "IN_PROGRESS", "RUNNING")

    done(story, "x", "y")
    assert middle.statuses == {"below": "COMPLETED"}
    middle.resume()
    done(story, "m", "r")
    assert statuses(story) == ["COMPLETED"] * 3
    all_is_well(story, middle)


def test_a_child_replaced_by_another_attempt_does_not_reopen_its_parent(clock):
    story = root(clock, sub_workflow("s", "leaf", policy=policy(retries=1)))
    first = story.child("s")
    story.worker("x").fails()
    assert story.child("s").id != first.id
    story.worker("x").fails()
    assert story.status == "FAILED"

    first.retry()

    assert (first.status, story.status) == ("RUNNING", "FAILED")
    done(story, "x", "y")
    assert (first.status, story.status) == ("COMPLETED", "FAILED")
    all_is_well(story, first)


def test_an_optional_child_does_not_reopen_its_parent(clock):
    story = root(clock, sub_workflow("s", "leaf", optional=True), step("r"))
    story.worker("x").fails()
    done(story, "r")
    assert story.status == "COMPLETED"

    story.child("s").retry()

    assert (story.child("s").status, story.status) == ("RUNNING", "COMPLETED")


def test_a_child_of_a_restarted_parent_does_not_reopen_it(clock):
    story = root(clock, sub_workflow("s", "leaf"))
    orphan = story.child("s")
    story.worker("x").fails()
    story.restart()

    orphan.retry()

    assert orphan.status == "RUNNING"
    assert story.child("s").id != orphan.id
    story.worker("x", "one").completes()
    story.worker("x", "two").completes()
    story.worker("y", "one").completes()
    story.worker("y", "two").completes()
    assert (orphan.status, story.status) == ("COMPLETED", "COMPLETED")


def test_a_restart_stops_children_that_are_still_open(clock):
    story = root(clock, sub_workflow("s", "leaf", optional=True), step("r"))
    story.worker("x").fails()
    done(story, "r")
    orphan = story.child("s")
    orphan.retry()

    story.restart()

    assert (orphan.status, story.child("s").status) == ("TERMINATED", "RUNNING")


def test_an_ended_child_keeps_its_status_when_its_task_is_reverted(clock):
    story = root(clock, sub_workflow("s", "leaf"))
    child = story.child("s")
    story.worker("x").fails()

    story.restart()

    assert (child.status, child.row.ended_at is None) == ("FAILED", False)


def test_a_completed_parent_waits_for_the_child_and_preserves_later_tasks(clock):
    story = root(clock)
    done(story, "x", "y", "m", "r")
    assert story.status == "COMPLETED"

    leaf_of(story).rerun("y")

    assert story.statuses == {"s": "IN_PROGRESS", "r": "COMPLETED"}
    assert middle_of(story).statuses == {"below": "IN_PROGRESS", "m": "COMPLETED"}
    done(story, "y")
    assert statuses(story) == ["COMPLETED"] * 3
    all_is_well(story, middle_of(story), leaf_of(story))


def test_a_parent_that_has_continued_is_not_reverted(clock):
    story = root(clock)
    done(story, "x", "y", "m")
    before = story.task("r").id

    middle_of(story).restart()

    assert (story.statuses, story.task("r").id) == ({"s": "COMPLETED", "r": "SCHEDULED"}, before)


def test_a_permitted_failure_waits_again_without_repeating_later_steps(clock):
    story = root(clock, sub_workflow("s", "leaf", permissive=True), step("r"), step("q"))
    story.worker("x").fails()
    assert story.is_waiting_for("r")

    story.child("s").retry()
    assert (story.statuses["s"], story.statuses["r"]) == ("IN_PROGRESS", "SCHEDULED")

    done(story, "x", "y", "r", "q")
    assert (story.status, story.attempts("r")) == ("COMPLETED", ["COMPLETED"])
    all_is_well(story)


def test_a_terminate_step_after_the_child_is_executed_again(clock):
    stop = switch("way", {"no": [terminate("t", "FAILED")]}, inputs={"way": "${s.output.way}"})
    leaf = definition(step("x"), name="leaf", outputParameters={"way": "${x.output.way}"})
    story = Story(clock, sub_workflow("s", "leaf"), stop, step("z"), others=[leaf])
    story.worker("x").completes(way="no")
    assert story.status == "FAILED"

    story.child("s").rerun("x")
    assert story.statuses == {"s": "IN_PROGRESS"}

    story.worker("x").completes(way="yes")
    done(story, "z")
    assert story.status == "COMPLETED"


def test_a_rerun_finds_the_task_in_a_run_below(clock):
    story = root(clock)
    done(story, "x", "y", "m", "r")
    leaf = leaf_of(story)

    story.rerun_from(leaf.task("y").id, task_input={"n": 1}, input={"of": "root"}, correlation_id="mine")

    assert leaf_of(story).id == leaf.id
    assert leaf.statuses == {"x": "COMPLETED", "y": "SCHEDULED"}
    assert leaf.task("y").input == {"n": 1}
    assert (story.row.input, story.row.correlation_id, leaf.row.input) == ({"of": "root"}, "mine", {})
    done(story, "y")
    assert statuses(story) == ["COMPLETED"] * 3
    all_is_well(story, middle_of(story), leaf)


def test_a_rerun_from_above_opens_optional_tasks_too(clock):
    story = root(clock, sub_workflow("s", "middle", optional=True), step("r"))
    story.worker("x").fails()
    done(story, "r")
    assert (story.status, story.statuses["s"]) == ("COMPLETED", "COMPLETED_WITH_ERRORS")

    story.rerun_from(leaf_of(story).task("x").id)

    assert (story.status, story.statuses) == ("RUNNING", {"s": "IN_PROGRESS", "r": "COMPLETED"})
    done(story, "x", "y", "m")
    assert (story.status, story.statuses["s"]) == ("COMPLETED", "COMPLETED")


def test_a_rerun_of_a_descendant_affects_no_run_above_the_requested_one(clock):
    story = root(clock, sub_workflow("s", "middle", optional=True))
    story.worker("x").fails()

    middle_of(story).rerun_from(leaf_of(story).task("x").id)

    assert (middle_of(story).status, story.status) == ("RUNNING", "COMPLETED")


def test_every_run_on_the_path_to_the_task_must_have_ended(clock):
    story = root(clock, sub_workflow("s", "middle", permissive=True), step("r"))
    story.worker("x").fails()
    assert story.status == "RUNNING"

    with pytest.raises(Conflict):
        story.rerun_from(leaf_of(story).task("x").id)


def test_a_task_of_a_replaced_child_is_not_found(clock):
    story = root(clock, sub_workflow("s", "leaf", policy=policy(retries=1)))
    lost = story.child("s").task("x").id
    story.worker("x").fails()
    done(story, "x", "y")

    with pytest.raises(Invalid):
        story.rerun_from(lost)


def test_a_sub_workflow_task_is_rerun_with_a_new_child(clock):
    story = root(clock, step("a", inputs={"n": 1}), sub_workflow("s", "leaf", inputs={"n": 1}), step("z"))
    done(story, "a", "x", "y", "z")
    first = story.child("s").id

    story.rerun("s", task_input={"n": 2})

    assert (story.statuses, story.child("s").id == first) == ({"a": "COMPLETED", "s": "IN_PROGRESS"}, False)
    assert story.child("s").row.input == {"n": 2}
    assert Run.objects.get(pk=first).status == "COMPLETED"
    done(story, "x", "y", "z")
    assert story.status == "COMPLETED"


def test_a_child_whose_task_timed_out_is_terminated_and_replaced(clock):
    limits = policy(timeout_seconds=10, timeout_policy="RETRY", retries=1)
    story = root(clock, sub_workflow("s", "middle", policy=limits))
    middle, leaf = middle_of(story), leaf_of(story)

    story.at(10)

    assert (middle.status, leaf.status) == ("TERMINATED", "TERMINATED")
    assert (middle_of(story).status, middle_of(story).id == middle.id) == ("RUNNING", False)


def test_a_child_without_a_waiting_parent_is_reopened_silently(clock):
    story = root(clock, sub_workflow("s", "leaf"))
    child = story.child("s")
    story.worker("x").fails()
    run_commands.remove_run(story.id, "a test")

    child.retry()

    assert child.status == "RUNNING"
    all_is_well(child)


def two_children(clock, *others) -> Story:
    """A fork of two children; one failed at its first task, after the other had completed its first."""
    bad = definition(step("b"), name="bad")
    good = definition(step("x"), step("y"), name="good")
    branches = fork([sub_workflow("bad", "bad")], [sub_workflow("good", "good")], [step("side")])
    story = Story(clock, *branches, step("z"), others=[bad, good, *others])
    story.worker("x").completes()
    story.worker("side").polls()
    story.worker("b").fails()
    assert (story.status, story.child("good").status) == ("FAILED", "TERMINATED")
    return story


WAYS = {
    "retry of the child": lambda story: story.child("bad").retry(),
    "retry of the parent that resumes": lambda story: story.retry(resume_children=True),
    "rerun of the child": lambda story: story.child("bad").rerun(),
    "rerun from a task of the child": lambda story: story.child("bad").rerun("b"),
    "rerun of the parent from there": lambda story: story.rerun_from(story.child("bad").task("b").id),
}


@pytest.mark.parametrize("opens", WAYS.values(), ids=WAYS)
def test_a_canceled_sibling_child_resumes_where_it_stopped(clock, opens):
    story = two_children(clock)
    good, tasks = story.child("good"), {ref: story.task(ref) for ref in ("bad", "good", "side", "join")}
    done_before = good.task("x")

    for _ in range(3):
        opens(story)

        assert (story.status, good.status) == ("RUNNING", "RUNNING")
        assert {ref: story.task(ref).id for ref in tasks} == {ref: task.id for ref, task in tasks.items()}
        assert {ref: story.task(ref).seq for ref in tasks} == {ref: task.seq for ref, task in tasks.items()}
        assert story.child("good").id == good.id
        assert (good.statuses, good.attempts("y")[-1]) == ({"x": "COMPLETED", "y": "SCHEDULED"}, "SCHEDULED")
        assert (good.task("x").id, good.task("x").ended_at) == (done_before.id, done_before.ended_at)
        story.worker("b").fails()
        assert (story.status, good.status) == ("FAILED", "TERMINATED")

    opens(story)
    done(story, "b", "y")
    story.worker("side", "another").completes()
    done(story, "z")
    assert story.status == "COMPLETED"
    all_is_well(story, good, story.child("bad"))


def test_a_canceled_sibling_task_reopens_under_its_id_with_the_next_attempt(clock):
    story = two_children(clock)
    before = story.task("side")

    story.child("bad").retry()

    after = story.task("side")
    assert story.attempts("side") == ["SCHEDULED"]
    assert (after.id, after.seq, after.number) == (before.id, before.seq, before.number + 1)
    assert (after.worker, after.poll_count, after.started_at, after.reason) == ("", 0, None, "")
    assert story.worker("side").completes() is False
    assert story.worker("side", "another").completes()


def test_a_child_completed_during_the_stop_of_its_parent_is_not_started_again(clock):
    story = two_children(clock)
    good = story.child("good")
    Run.objects.filter(pk=good.id).update(status="COMPLETED", output={"kept": 1})

    story.child("bad").retry()

    assert (story.statuses["good"], story.task("good").output["kept"]) == ("COMPLETED", 1)
    assert story.child("good").id == good.id


def test_a_deleted_child_is_started_again(clock):
    story = two_children(clock)
    good = story.child("good").id
    Run.objects.filter(pk=good).delete()

    story.child("bad").retry()

    assert story.attempts("good") == ["CANCELED", "IN_PROGRESS"]
    assert story.child("good").id != good
    done(story, "b", "x", "y")
    story.worker("side", "another").completes()
    done(story, "z")
    assert story.status == "COMPLETED"


def test_a_child_that_ends_again_at_once_ends_its_parent_again(clock):
    """Its first step decides alone that it fails: nothing in it can be tried again."""
    ends = definition(terminate("t", "FAILED"), name="ends")
    waits = definition(step("x"), name="waits")
    story = Story(clock, *fork([sub_workflow("two", "waits")], [sub_workflow("one", "ends")]), others=[ends, waits])
    assert story.status == "FAILED"

    story.child("two").retry()

    assert (story.status, story.child("two").status, story.child("one").status) == ("FAILED", "TERMINATED", "FAILED")
    all_is_well(story, story.child("one"), story.child("two"))


def test_a_task_that_failed_after_the_child_waits_for_its_new_result(clock):
    story = root(clock, sub_workflow("s", "leaf"), step("r", inputs={"of": "${s.output.by}"}))
    done(story, "x", "y")
    story.worker("r").fails()

    story.child("s").rerun("y")

    assert story.statuses == {"s": "IN_PROGRESS"}
    story.worker("y").completes(by="the new one")
    assert story.task("r").input == {"of": "the new one"}


def test_a_late_end_of_a_replaced_child_does_not_end_the_task_that_waits_for_another(clock):
    story = root(clock, sub_workflow("s", "leaf"), step("r"))
    done(story, "x", "y")
    story.worker("r").fails()
    first, task = story.child("s"), story.task("s")
    story.rerun("s")
    assert (story.task("s").id, story.child("s").id == first.id) == (task.id, False)
    told = {"attempt": task.id, "child": first.id}

    with run_commit_hooks():
        deliver(Message.objects.create(to=story.id, subject="child_ended", facts=told, sent_at=0, due_at=0).pk)

    assert story.statuses["s"] == "IN_PROGRESS"
    all_is_well(story, story.child("s"))
