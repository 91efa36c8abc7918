"""Reopened child runs: their parents wait for them again (execution §7.3, §7.4, §7.6, §11 37, 38)."""

from collections.abc import Callable

import pytest

from conductor_app.core.errors import Conflict, Invalid
from conductor_app.runs.commands import control
from conductor_app.runs.commands.messages import deliver
from conductor_app.runs.models import Message, Run, TaskLog
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
from tests.runs.report_contexts import row_violations
from tests.scenario import RunView, Scenario, run_commit_hooks

LEAF = definition(step("x"), step("y"), name="leaf")
MIDDLE = definition(sub_workflow("below", "leaf"), step("m"), name="middle")


def root(clock, *steps, **fields) -> Scenario:
    return Scenario(clock, *(steps or [sub_workflow("s", "middle"), step("r")]), others=[LEAF, MIDDLE], **fields)


def middle_of(scenario: Scenario) -> RunView:
    return scenario.child("s")


def leaf_of(scenario: Scenario) -> RunView:
    return middle_of(scenario).child("below")


def statuses(scenario: Scenario) -> list[str]:
    return [run.status for run in (scenario, middle_of(scenario), leaf_of(scenario))]


def all_is_well(*runs: RunView) -> None:
    assert [each for run in runs for each in row_violations(run.id)] == []


def test_a_resuming_retry_descends_to_the_first_failed_task(clock):
    scenario = root(clock)
    scenario.complete("x")
    scenario.worker("y").fails()
    leaf = leaf_of(scenario)
    assert statuses(scenario) == ["FAILED"] * 3

    scenario.retry(resume_children=True)

    assert leaf_of(scenario).id == leaf.id
    assert statuses(scenario) == ["RUNNING"] * 3
    assert leaf.attempts("y") == ["FAILED", "SCHEDULED"]
    assert (scenario.statuses["s"], middle_of(scenario).statuses["below"]) == ("IN_PROGRESS", "IN_PROGRESS")
    assert (scenario.reason, scenario.row.failed_refs) == ("", [])
    scenario.complete("y", "m", "r")
    assert statuses(scenario) == ["COMPLETED"] * 3
    all_is_well(scenario, middle_of(scenario), leaf)


def test_a_retry_that_does_not_resume_starts_a_new_child(clock):
    scenario = root(clock)
    scenario.worker("x").fails()
    first = middle_of(scenario).id

    scenario.retry()

    assert middle_of(scenario).id != first
    assert Run.objects.get(pk=first).status == "FAILED"


def test_a_resuming_retry_stops_at_a_task_that_failed_itself(clock):
    scenario = root(clock, step("a"), sub_workflow("s", "middle"))
    scenario.worker("a").fails()

    scenario.retry(resume_children=True)

    assert scenario.statuses == {"a": "SCHEDULED"}


def test_a_resuming_retry_prefers_failed_tasks_to_canceled_ones(clock):
    scenario = root(clock, *fork([sub_workflow("one", "leaf")], [sub_workflow("two", "leaf")]))
    one, two = scenario.child("one"), scenario.child("two")
    scenario.worker("x").polls()
    failed = RunView(scenario.worker("x").held.run_id)
    scenario.worker("x").fails()
    other = one if failed.id == two.id else two
    assert (failed.status, other.status) == ("FAILED", "TERMINATED")

    scenario.retry(resume_children=True)

    assert failed.status == "RUNNING"
    assert {scenario.statuses["one"], scenario.statuses["two"]} == {"IN_PROGRESS"}


OPENED: dict[str, Callable[[RunView], None]] = {
    "retried": lambda run: run.retry(),
    "restarted": lambda run: run.restart(),
    "rerun from its start": lambda run: run.rerun(),
    "rerun from a task": lambda run: run.rerun("y"),
}


@pytest.mark.parametrize("opens", OPENED.values(), ids=OPENED)
def test_all_ancestors_wait_again_for_a_continued_run(clock, opens):
    scenario = root(clock)
    scenario.complete("x")
    scenario.worker("y").fails()
    leaf = leaf_of(scenario)

    clock.advance(seconds=9)
    opens(leaf)

    assert statuses(scenario) == ["RUNNING"] * 3
    assert middle_of(scenario).task("below").child_id == leaf.id
    if leaf.statuses == {"x": "SCHEDULED"}:
        scenario.complete("x")
    scenario.complete("y", "m", "r")
    assert statuses(scenario) == ["COMPLETED"] * 3
    assert scenario.row.last_retried_at == clock.now()
    all_is_well(scenario, middle_of(scenario), leaf)


def test_the_task_that_waits_again_has_a_reason(clock):
    scenario = root(clock)
    scenario.worker("x").fails()

    leaf_of(scenario).restart()

    lines = TaskLog.objects.filter(attempt_id=middle_of(scenario).task("below").id)
    assert [line.line for line in lines] == [f"Sub workflow {leaf_of(scenario).id} was restarted."]


def test_tasks_canceled_with_the_child_resume(clock):
    beside = [sub_workflow("other", "leaf")]
    steps = [*fork([sub_workflow("s", "middle")], [step("a")], [human("h")], beside), step("z")]
    scenario = root(clock, *steps)
    other = scenario.child("other")
    scenario.worker("x").polls()
    held = RunView(scenario.worker("x").held.run_id)
    if held.id == other.id:
        scenario.worker("x", "second").polls()
        scenario.worker("x", "second").fails()
    else:
        scenario.worker("x").fails()
    assert scenario.status == "FAILED"
    assert {scenario.statuses[ref] for ref in ("a", "h", "other", "join")} == {"CANCELED"}
    assert other.status == "TERMINATED"

    leaf_of(scenario).retry()

    assert (scenario.statuses["s"], scenario.statuses["a"], scenario.statuses["h"], scenario.statuses["join"]) == (
        "IN_PROGRESS", "SCHEDULED", "IN_PROGRESS", "IN_PROGRESS",
    )  # fmt: skip
    assert scenario.attempts("other") == ["IN_PROGRESS"]
    assert scenario.child("other").id == other.id
    for worker in ("one", "two"):
        scenario.worker("x", worker).completes()
        scenario.worker("y", worker).completes()
    scenario.complete("m", "a")
    scenario.reports("h")
    scenario.complete("z")
    assert scenario.status == "COMPLETED"
    all_is_well(scenario, middle_of(scenario))


def test_other_failed_tasks_of_the_parent_are_retried(clock):
    scenario = root(clock, *fork([sub_workflow("s", "leaf")], [step("a")]))
    scenario.worker("a").fails()
    assert (scenario.statuses["s"], scenario.child("s").status) == ("CANCELED", "TERMINATED")

    scenario.child("s").retry()

    assert (scenario.status, scenario.statuses["s"], scenario.statuses["a"]) == ("RUNNING", "IN_PROGRESS", "SCHEDULED")


def test_a_surrounding_loop_continues_in_its_iteration(clock):
    scenario = root(clock, loop("l", sub_workflow("s", "leaf"), step("a"), times=2))
    scenario.complete("x", "y", "a", "x")
    scenario.worker("y").fails()

    scenario.child("s__2").retry()

    assert (scenario.statuses["l"], scenario.statuses["s__2"]) == ("IN_PROGRESS", "IN_PROGRESS")
    scenario.complete("y", "a")
    assert scenario.status == "COMPLETED"
    all_is_well(scenario)


def test_a_child_of_a_dynamic_fork_is_retried(clock):
    inputs = {"forkTaskInputs": [{"n": 1}, {"n": 2}], "forkTaskWorkflow": "leaf"}
    scenario = root(clock, *dynamic_fork(inputs=inputs, optional=False), step("z"))
    for worker in ("one", "two"):
        scenario.worker("x", worker).completes()
    scenario.worker("y").fails()
    failed = next(ref for ref, status in scenario.statuses.items() if status == "FAILED")

    scenario.child(failed).retry()
    assert scenario.status == "RUNNING"

    # The other one was terminated with its parent, and resumes: its first task stays completed.
    scenario.complete("y", "y", "z")
    assert scenario.status == "COMPLETED"
    all_is_well(scenario)


def test_a_paused_parent_stays_paused(clock):
    scenario = root(clock)
    middle = middle_of(scenario)
    middle.pause()
    scenario.worker("x").fails()
    assert (middle.status, middle.statuses["below"]) == ("PAUSED", "FAILED")

    leaf_of(scenario).retry()
    assert (middle.status, middle.statuses["below"], scenario.status) == ("PAUSED", "IN_PROGRESS", "RUNNING")

    scenario.complete("x", "y")
    assert middle.statuses == {"below": "COMPLETED"}
    middle.resume()
    scenario.complete("m", "r")
    assert statuses(scenario) == ["COMPLETED"] * 3
    all_is_well(scenario, middle)


def test_a_child_replaced_by_another_attempt_does_not_reopen_its_parent(clock):
    scenario = root(clock, sub_workflow("s", "leaf", policy=policy(retries=1)))
    first = scenario.child("s")
    scenario.worker("x").fails()
    assert scenario.child("s").id != first.id
    scenario.worker("x").fails()
    assert scenario.status == "FAILED"

    first.retry()

    assert (first.status, scenario.status) == ("RUNNING", "FAILED")
    scenario.complete("x", "y")
    assert (first.status, scenario.status) == ("COMPLETED", "FAILED")
    all_is_well(scenario, first)


def test_an_optional_child_does_not_reopen_its_parent(clock):
    scenario = root(clock, sub_workflow("s", "leaf", optional=True), step("r"))
    scenario.worker("x").fails()
    scenario.complete("r")
    assert scenario.status == "COMPLETED"

    scenario.child("s").retry()

    assert (scenario.child("s").status, scenario.status) == ("RUNNING", "COMPLETED")


def test_a_child_of_a_restarted_parent_does_not_reopen_it(clock):
    scenario = root(clock, sub_workflow("s", "leaf"))
    orphan = scenario.child("s")
    scenario.worker("x").fails()
    scenario.restart()

    orphan.retry()

    assert orphan.status == "RUNNING"
    assert scenario.child("s").id != orphan.id
    scenario.worker("x", "one").completes()
    scenario.worker("x", "two").completes()
    scenario.worker("y", "one").completes()
    scenario.worker("y", "two").completes()
    assert (orphan.status, scenario.status) == ("COMPLETED", "COMPLETED")


def test_a_restart_stops_children_that_are_still_open(clock):
    scenario = root(clock, sub_workflow("s", "leaf", optional=True), step("r"))
    scenario.worker("x").fails()
    scenario.complete("r")
    orphan = scenario.child("s")
    orphan.retry()

    scenario.restart()

    assert (orphan.status, scenario.child("s").status) == ("TERMINATED", "RUNNING")


def test_an_ended_child_keeps_its_status_when_its_task_is_reverted(clock):
    scenario = root(clock, sub_workflow("s", "leaf"))
    child = scenario.child("s")
    scenario.worker("x").fails()

    scenario.restart()

    assert (child.status, child.row.ended_at is None) == ("FAILED", False)


def test_a_completed_parent_waits_for_the_child_and_preserves_later_tasks(clock):
    scenario = root(clock)
    scenario.complete("x", "y", "m", "r")
    assert scenario.status == "COMPLETED"

    leaf_of(scenario).rerun("y")

    assert scenario.statuses == {"s": "IN_PROGRESS", "r": "COMPLETED"}
    assert middle_of(scenario).statuses == {"below": "IN_PROGRESS", "m": "COMPLETED"}
    scenario.complete("y")
    assert statuses(scenario) == ["COMPLETED"] * 3
    all_is_well(scenario, middle_of(scenario), leaf_of(scenario))


def test_a_parent_that_has_continued_is_not_reverted(clock):
    scenario = root(clock)
    scenario.complete("x", "y", "m")
    before = scenario.task("r").id

    middle_of(scenario).restart()

    assert (scenario.statuses, scenario.task("r").id) == ({"s": "COMPLETED", "r": "SCHEDULED"}, before)


def test_a_permitted_failure_waits_again_without_repeating_later_steps(clock):
    scenario = root(clock, sub_workflow("s", "leaf", permissive=True), step("r"), step("q"))
    scenario.worker("x").fails()
    assert scenario.is_waiting_for("r")

    scenario.child("s").retry()
    assert (scenario.statuses["s"], scenario.statuses["r"]) == ("IN_PROGRESS", "SCHEDULED")

    scenario.complete("x", "y", "r", "q")
    assert (scenario.status, scenario.attempts("r")) == ("COMPLETED", ["COMPLETED"])
    all_is_well(scenario)


def test_a_terminate_step_after_the_child_is_executed_again(clock):
    stop = switch("way", {"no": [terminate("t", "FAILED")]}, inputs={"way": "${s.output.way}"})
    leaf = definition(step("x"), name="leaf", outputParameters={"way": "${x.output.way}"})
    scenario = Scenario(clock, sub_workflow("s", "leaf"), stop, step("z"), others=[leaf])
    scenario.worker("x").completes(way="no")
    assert scenario.status == "FAILED"

    scenario.child("s").rerun("x")
    assert scenario.statuses == {"s": "IN_PROGRESS"}

    scenario.worker("x").completes(way="yes")
    scenario.complete("z")
    assert scenario.status == "COMPLETED"


def test_a_rerun_finds_the_task_in_a_run_below(clock):
    scenario = root(clock)
    scenario.complete("x", "y", "m", "r")
    leaf = leaf_of(scenario)

    scenario.rerun_from(leaf.task("y").id, task_input={"n": 1}, input={"of": "root"}, correlation_id="mine")

    assert leaf_of(scenario).id == leaf.id
    assert leaf.statuses == {"x": "COMPLETED", "y": "SCHEDULED"}
    assert leaf.task("y").input == {"n": 1}
    assert (scenario.row.input, scenario.row.correlation_id, leaf.row.input) == ({"of": "root"}, "mine", {})
    scenario.complete("y")
    assert statuses(scenario) == ["COMPLETED"] * 3
    all_is_well(scenario, middle_of(scenario), leaf)


def test_a_rerun_from_above_opens_optional_tasks_too(clock):
    scenario = root(clock, sub_workflow("s", "middle", optional=True), step("r"))
    scenario.worker("x").fails()
    scenario.complete("r")
    assert (scenario.status, scenario.statuses["s"]) == ("COMPLETED", "COMPLETED_WITH_ERRORS")

    scenario.rerun_from(leaf_of(scenario).task("x").id)

    assert (scenario.status, scenario.statuses) == ("RUNNING", {"s": "IN_PROGRESS", "r": "COMPLETED"})
    scenario.complete("x", "y", "m")
    assert (scenario.status, scenario.statuses["s"]) == ("COMPLETED", "COMPLETED")


def test_a_rerun_of_a_descendant_affects_no_run_above_the_requested_one(clock):
    scenario = root(clock, sub_workflow("s", "middle", optional=True))
    scenario.worker("x").fails()

    middle_of(scenario).rerun_from(leaf_of(scenario).task("x").id)

    assert (middle_of(scenario).status, scenario.status) == ("RUNNING", "COMPLETED")


def test_every_run_on_the_path_to_the_task_must_have_ended(clock):
    scenario = root(clock, sub_workflow("s", "middle", permissive=True), step("r"))
    scenario.worker("x").fails()
    assert scenario.status == "RUNNING"

    with pytest.raises(Conflict):
        scenario.rerun_from(leaf_of(scenario).task("x").id)


def test_a_task_of_a_replaced_child_is_not_found(clock):
    scenario = root(clock, sub_workflow("s", "leaf", policy=policy(retries=1)))
    lost = scenario.child("s").task("x").id
    scenario.worker("x").fails()
    scenario.complete("x", "y")

    with pytest.raises(Invalid):
        scenario.rerun_from(lost)


def test_a_sub_workflow_task_is_rerun_with_a_new_child(clock):
    scenario = root(clock, step("a", inputs={"n": 1}), sub_workflow("s", "leaf", inputs={"n": 1}), step("z"))
    scenario.complete("a", "x", "y", "z")
    first = scenario.child("s").id

    scenario.rerun("s", task_input={"n": 2})

    assert (scenario.statuses, scenario.child("s").id == first) == ({"a": "COMPLETED", "s": "IN_PROGRESS"}, False)
    assert scenario.child("s").row.input == {"n": 2}
    assert Run.objects.get(pk=first).status == "COMPLETED"
    scenario.complete("x", "y", "z")
    assert scenario.status == "COMPLETED"


def test_a_child_whose_task_timed_out_is_terminated_and_replaced(clock):
    limits = policy(timeout_seconds=10, timeout_policy="RETRY", retries=1)
    scenario = root(clock, sub_workflow("s", "middle", policy=limits))
    middle, leaf = middle_of(scenario), leaf_of(scenario)

    scenario.at(10)

    assert (middle.status, leaf.status) == ("TERMINATED", "TERMINATED")
    assert (middle_of(scenario).status, middle_of(scenario).id == middle.id) == ("RUNNING", False)


def test_a_child_without_a_waiting_parent_is_reopened_silently(clock):
    scenario = root(clock, sub_workflow("s", "leaf"))
    child = scenario.child("s")
    scenario.worker("x").fails()
    control.remove_run(scenario.id, "ann")

    child.retry()

    assert child.status == "RUNNING"
    all_is_well(child)


def two_children(clock, *others) -> Scenario:
    """Start a fork of two children. One failed at its first task, after the other had completed its first task."""
    bad = definition(step("b"), name="bad")
    good = definition(step("x"), step("y"), name="good")
    branches = fork([sub_workflow("bad", "bad")], [sub_workflow("good", "good")], [step("side")])
    scenario = Scenario(clock, *branches, step("z"), others=[bad, good, *others])
    scenario.worker("x").completes()
    scenario.worker("side").polls()
    scenario.worker("b").fails()
    assert (scenario.status, scenario.child("good").status) == ("FAILED", "TERMINATED")
    return scenario


WAYS = {
    "retry of the child": lambda scenario: scenario.child("bad").retry(),
    "retry of the parent that resumes": lambda scenario: scenario.retry(resume_children=True),
    "rerun of the child": lambda scenario: scenario.child("bad").rerun(),
    "rerun from a task of the child": lambda scenario: scenario.child("bad").rerun("b"),
    "rerun of the parent from there": lambda scenario: scenario.rerun_from(scenario.child("bad").task("b").id),
}


@pytest.mark.parametrize("opens", WAYS.values(), ids=WAYS)
def test_a_canceled_sibling_child_resumes_where_it_stopped(clock, opens):
    scenario = two_children(clock)
    good, tasks = scenario.child("good"), {ref: scenario.task(ref) for ref in ("bad", "good", "side", "join")}
    done_before = good.task("x")

    for _ in range(3):
        opens(scenario)

        assert (scenario.status, good.status) == ("RUNNING", "RUNNING")
        assert {ref: scenario.task(ref).id for ref in tasks} == {ref: task.id for ref, task in tasks.items()}
        assert {ref: scenario.task(ref).seq for ref in tasks} == {ref: task.seq for ref, task in tasks.items()}
        assert scenario.child("good").id == good.id
        assert (good.statuses, good.attempts("y")[-1]) == ({"x": "COMPLETED", "y": "SCHEDULED"}, "SCHEDULED")
        assert (good.task("x").id, good.task("x").ended_at) == (done_before.id, done_before.ended_at)
        scenario.worker("b").fails()
        assert (scenario.status, good.status) == ("FAILED", "TERMINATED")

    opens(scenario)
    scenario.complete("b", "y")
    scenario.worker("side", "another").completes()
    scenario.complete("z")
    assert scenario.status == "COMPLETED"
    all_is_well(scenario, good, scenario.child("bad"))


def test_a_canceled_sibling_task_reopens_under_its_id_with_the_next_attempt(clock):
    scenario = two_children(clock)
    before = scenario.task("side")

    scenario.child("bad").retry()

    after = scenario.task("side")
    assert scenario.attempts("side") == ["SCHEDULED"]
    assert (after.id, after.seq, after.number) == (before.id, before.seq, before.number + 1)
    assert (after.worker, after.poll_count, after.started_at, after.reason) == ("", 0, None, "")
    assert scenario.worker("side").completes() is False
    assert scenario.worker("side", "another").completes()


def test_a_child_completed_during_the_stop_of_its_parent_is_not_started_again(clock):
    scenario = two_children(clock)
    good = scenario.child("good")
    Run.objects.filter(pk=good.id).update(status="COMPLETED", output={"kept": 1})

    scenario.child("bad").retry()

    assert (scenario.statuses["good"], scenario.task("good").output["kept"]) == ("COMPLETED", 1)
    assert scenario.child("good").id == good.id


def test_a_deleted_child_is_started_again(clock):
    scenario = two_children(clock)
    good = scenario.child("good").id
    Run.objects.filter(pk=good).delete()

    scenario.child("bad").retry()

    assert scenario.attempts("good") == ["CANCELED", "IN_PROGRESS"]
    assert scenario.child("good").id != good
    scenario.complete("b", "x", "y")
    scenario.worker("side", "another").completes()
    scenario.complete("z")
    assert scenario.status == "COMPLETED"


def test_a_child_that_ends_again_at_once_ends_its_parent_again(clock):
    """Its first step itself decides that the run fails: the run has no task that can be retried."""
    ends = definition(terminate("t", "FAILED"), name="ends")
    waits = definition(step("x"), name="waits")
    scenario = Scenario(
        clock, *fork([sub_workflow("two", "waits")], [sub_workflow("one", "ends")]), others=[ends, waits]
    )
    assert scenario.status == "FAILED"

    scenario.child("two").retry()

    assert (scenario.status, scenario.child("two").status, scenario.child("one").status) == (
        "FAILED",
        "TERMINATED",
        "FAILED",
    )
    all_is_well(scenario, scenario.child("one"), scenario.child("two"))


def test_a_task_that_failed_after_the_child_waits_for_its_new_result(clock):
    scenario = root(clock, sub_workflow("s", "leaf"), step("r", inputs={"of": "${s.output.by}"}))
    scenario.complete("x", "y")
    scenario.worker("r").fails()

    scenario.child("s").rerun("y")

    assert scenario.statuses == {"s": "IN_PROGRESS"}
    scenario.worker("y").completes(by="the new one")
    assert scenario.task("r").input == {"of": "the new one"}


def test_a_late_end_of_a_replaced_child_does_not_end_the_task_that_waits_for_another(clock):
    scenario = root(clock, sub_workflow("s", "leaf"), step("r"))
    scenario.complete("x", "y")
    scenario.worker("r").fails()
    first, task = scenario.child("s"), scenario.task("s")
    scenario.rerun("s")
    assert (scenario.task("s").id, scenario.child("s").id == first.id) == (task.id, False)
    facts = {"attempt": task.id, "child": first.id}

    with run_commit_hooks():
        deliver(Message.objects.create(to=scenario.id, subject="child_ended", facts=facts, sent_at=0, due_at=0).pk)

    assert scenario.statuses["s"] == "IN_PROGRESS"
    all_is_well(scenario, scenario.child("s"))
