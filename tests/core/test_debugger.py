"""The debugger in the decision core: a run that stops everywhere does the same work as one that stops nowhere."""

from dataclasses import replace

import pytest

from conductor_app.core import commands
from conductor_app.core.breakpoints import AFTER, BEFORE, FAILURE, Breakpoint
from conductor_app.core.child_runs import new_child_run
from conductor_app.core.data_requests import ScriptResult
from conductor_app.core.errors import Invalid, NotAllowedInState
from conductor_app.core.snapshot import NEVER
from tests.builders import (
    dynamic,
    dynamic_fork,
    fork,
    inline,
    loop,
    noop,
    plan,
    policy,
    set_variable,
    step,
    sub_workflow,
    switch,
    terminate,
    try_,
    wait,
)
from tests.core.simulated_run import RunInMemory

HOUR = 3_600_000
NEXT = Breakpoint("next", "", BEFORE, NEVER, HOUR, is_temporary=True)


def breakpoint_at(ref: str, place: str = BEFORE, **fields) -> Breakpoint:
    return Breakpoint(f"{ref}-{place}", ref, place, NEVER, HOUR, by="ada", **fields)


def debugged(definition, *breakpoints: Breakpoint, **fields) -> RunInMemory:
    return RunInMemory(definition, debug={"breakpoints": [each.to_document() for each in breakpoints]}, **fields)


def stopped_tasks(run: RunInMemory) -> list[str]:
    return sorted(str(task.key) for task in run.snapshot.tasks.values() if task.is_stopped)


def release(run: RunInMemory, key: str, action: str = "continue", **fields) -> None:
    run.apply(commands.ContinueFromStop(run.task(key).attempt.id, action, NEXT, **fields))


ENDING = {"terminationStatus": "COMPLETED"}
DEFINITIONS = {
    "steps": plan(step("a"), step("b")),
    "parallel branches": plan(fork([step("a")], [step("b"), step("c")])),
    "branches from data": plan(
        dynamic_fork(
            inputs={
                "tasks": [{"name": "x", "taskReferenceName": "x", "type": "SIMPLE"}],
                "inputs": {"x": {}},
            }
        ),
        step("z"),
    ),
    "loop": plan(loop("l", step("a"), noop("n"), times=2), step("z")),
    "switch": plan(switch("s", {"yes": [step("a")]}, default=[step("b")]), step("z")),
    "steps of the engine": plan(set_variable("v", x=1), inline("i", "1 + 1"), noop("n")),
    "failure that is caught": plan(try_("t", step("a"), default=[step("b")]), step("z")),
    "end by a step": plan(step("a"), terminate("end"), step("z")),
    "types that inputs name": plan(dynamic("d", "SET_VARIABLE", inputs={"x": 1}), dynamic("w", "pack")),
    "end by a type that an input names": plan(dynamic("d", "TERMINATE", inputs=ENDING), step("z")),
    "timer": plan(wait("w", duration="5 seconds"), step("z")),
}


def work(run: RunInMemory) -> RunInMemory:
    """Continue every stop and complete every task until nothing is left."""
    for _ in range(60):
        if stopped := stopped_tasks(run):
            release(run, stopped[0])
        elif run.waiting:
            run.completes(run.waiting[0])
        else:
            run.later(5)
    return run


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("places", [(BEFORE,), (AFTER,), (BEFORE, AFTER, FAILURE)])
def test_a_run_that_stops_at_every_step_does_the_same_work(name, places):
    plain = work(RunInMemory(DEFINITIONS[name]))
    stopping = work(debugged(DEFINITIONS[name], *(breakpoint_at("", place) for place in places)))
    assert plain.status == stopping.status == "COMPLETED"
    assert stopping.statuses == plain.statuses
    assert stopping.snapshot.output == plain.snapshot.output
    assert stopping.snapshot.variables == plain.snapshot.variables
    assert not stopping.snapshot.debug.get("stops")


def test_no_worker_can_claim_a_task_at_a_breakpoint_before_it():
    run = debugged(DEFINITIONS["steps"], breakpoint_at("b"))
    run.completes("a")
    assert stopped_tasks(run) == ["b"]
    assert run.task("b").attempt.visible_at == NEVER
    release(run, "b")
    assert run.task("b").attempt.visible_at == run.now * 1000
    assert run.completes("b").status == "COMPLETED"


def test_a_run_does_not_continue_after_a_breakpoint_behind_a_step():
    run = debugged(DEFINITIONS["steps"], breakpoint_at("a", AFTER))
    run.completes("a", total=1)
    assert (stopped_tasks(run), list(run.statuses)) == (["a"], ["a"])
    release(run, "a", output={"total": 2})
    assert run.waiting == ["b"]
    assert run.task("a").attempt.output == {"total": 2}


def test_a_failure_stops_before_its_retry():
    run = debugged(plan(step("a", policy=policy(retries=1))), breakpoint_at("a", FAILURE))
    run.fails("a")
    assert (stopped_tasks(run), run.waiting) == (["a"], [])
    release(run, "a", input={"fixed": True})
    assert run.waiting == ["a"]
    assert run.task("a").attempt.number == 1
    assert run.task("a").attempt.input == {"fixed": True}


def test_a_condition_decides_whether_a_breakpoint_stops():
    definition = plan(step("a"), step("b"))
    condition = "${a.output.total} > 5 && ${workflow.input.kind} == 'large'"
    for total, kind, stops in ((6, "large", ["b"]), (5, "large", []), (6, "small' || true || 'large", [])):
        run = debugged(definition, breakpoint_at("b", condition=condition), input={"kind": kind})
        run.completes("a", total=total)
        assert stopped_tasks(run) == stops


def test_a_condition_that_cannot_be_evaluated_stops_with_its_error():
    scripts = {"nonsense.field > 1": ScriptResult(error="nonsense is not defined")}
    run = debugged(DEFINITIONS["steps"], breakpoint_at("a", condition="nonsense.field > 1"), scripts=scripts)
    assert stopped_tasks(run) == ["a"]
    [stop] = run.snapshot.debug["stops"].values()
    assert stop["error"]


def test_a_stop_ends_by_itself_when_its_time_is_over():
    run = debugged(DEFINITIONS["steps"], breakpoint_at("a"))
    assert run.snapshot.wake_at == HOUR
    run.later(3601)
    assert (stopped_tasks(run), run.waiting) == ([], ["a"])
    assert not run.snapshot.debug.get("stops")


def test_an_expired_breakpoint_stops_no_run():
    run = debugged(DEFINITIONS["steps"], replace(breakpoint_at("b"), until=1_000))
    run.later(2)
    assert stopped_tasks(run.completes("a")) == []


def test_stepping_over_stops_before_the_next_step_once():
    run = debugged(plan(step("a"), step("b"), step("c")), breakpoint_at("a"))
    release(run, "a", "over")
    run.completes("a")
    assert stopped_tasks(run) == ["b"]
    release(run, "b")
    assert stopped_tasks(run.completes("b")) == []


def test_running_to_a_step_passes_the_steps_before_it():
    run = debugged(plan(step("a"), step("b"), step("c")), breakpoint_at("a"))
    release(run, "a", "to", ref="c")
    run.completes("a", "b")
    assert stopped_tasks(run) == ["c"]


def test_no_run_to_a_step_at_which_it_would_not_stop():
    run = debugged(plan(step("a"), step("b"), step("c")), breakpoint_at("b")).completes("a")

    for begun in ("a", "b"):
        with pytest.raises(Invalid, match=f"Step {begun} has begun already"):
            release(run, "b", "to", ref=begun)
    assert stopped_tasks(run) == ["b"]


def test_a_run_stops_at_a_step_of_the_next_iteration():
    run = debugged(plan(loop("pages", step("a"), step("b"), times=2)), breakpoint_at("b"))
    run.completes("a__1")
    release(run, "b__1", "to", ref="a")
    run.completes("b__1")

    assert stopped_tasks(run) == ["a__2"]


def test_stepping_into_a_sub_workflow_stops_before_its_first_step():
    child = plan(step("x"), name="child")
    run = debugged(plan(sub_workflow("s"), step("z")), breakpoint_at("s"), known={"child": child})
    release(run, "s", "into")
    [start] = run.started
    debug = new_child_run(start, run.snapshot, 0).debug
    assert stopped_tasks(RunInMemory(child, debug=debug)) == ["x"]
    run.child_ended("s", "COMPLETED")
    assert stopped_tasks(run) == ["z"]


def test_only_a_sub_workflow_can_be_stepped_into():
    run = debugged(DEFINITIONS["steps"], breakpoint_at("a"))
    with pytest.raises(Invalid, match="not about to start a sub-workflow"):
        release(run, "a", "into")


def test_the_input_of_the_next_task_can_be_changed():
    definition = plan(step("a", inputs={"x": 1}), set_variable("v", x=1))
    run = debugged(definition, breakpoint_at("a"), breakpoint_at("v"))
    release(run, "a", input={"x": 2})
    assert run.task("a").attempt.input == {"x": 2}
    run.completes("a")
    release(run, "v", input={"x": 3}, variables={"y": 4})
    assert run.snapshot.variables == {"x": 3, "y": 4}


def test_a_stop_cannot_be_continued_twice():
    run = debugged(DEFINITIONS["steps"], breakpoint_at("a"))
    release(run, "a")
    with pytest.raises(NotAllowedInState, match="not stopped"):
        release(run, "a")


def test_a_report_from_outside_ends_the_stop():
    run = debugged(DEFINITIONS["steps"], breakpoint_at("a"))
    run.completes("a")
    assert (stopped_tasks(run), run.waiting) == ([], ["b"])
    assert not run.snapshot.debug.get("stops")


def test_timers_of_a_task_stand_still_while_it_is_stopped():
    timed = policy(total_seconds=100, poll_seconds=10)
    run = debugged(plan(step("a", policy=timed)), breakpoint_at("a"))
    run.later(500)
    assert run.status == "RUNNING"
    release(run, "a")
    attempt = run.task("a").attempt
    assert (attempt.due_at, attempt.total_ends_at) == (510_000, 600_000)


def test_rewinding_undoes_later_tasks_and_stops_before_the_step():
    run = RunInMemory(plan(step("a"), step("b"), step("c")))
    run.completes("a", "b")
    run.apply(commands.Rewind(commands.Rerun(run.task("b").key), NEXT))
    assert run.status == "RUNNING"
    assert list(run.statuses) == ["a", "b"]
    assert stopped_tasks(run) == ["b"]


def test_a_breakpoint_can_be_set_on_a_run_in_progress_and_removed():
    run = RunInMemory(DEFINITIONS["steps"])
    run.apply(commands.set_breakpoint(breakpoint_at("b")))
    run.apply(commands.remove_breakpoint("b-before"))
    assert run.snapshot.debug == {}
    run.apply(commands.set_breakpoint(breakpoint_at("b", AFTER)))
    assert stopped_tasks(run.completes("a", "b")) == ["b"]


def test_a_breakpoint_names_a_step_a_place_and_a_readable_condition():
    run = RunInMemory(DEFINITIONS["steps"])
    for wrong, message in (
        (breakpoint_at("nowhere"), "no step"),
        (breakpoint_at("a", "sometime"), "Unknown place"),
        (breakpoint_at("a", condition="  "), "empty"),
    ):
        with pytest.raises(Invalid, match=message):
            run.apply(commands.set_breakpoint(wrong))


def test_a_terminated_run_is_not_stopped_any_more():
    run = debugged(DEFINITIONS["parallel branches"], breakpoint_at("a"), breakpoint_at("b", AFTER))
    run.completes("b")
    run.apply(commands.terminate_run("enough"))
    assert (run.status, stopped_tasks(run)) == ("TERMINATED", [])
