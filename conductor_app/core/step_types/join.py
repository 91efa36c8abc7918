"""JOIN: waits until every task that it joins has ended."""

from collections.abc import Iterator
from typing import Any, cast

from ..data_requests import ABSENT, DataRequired, JoinedOutcomes, TaskOutcome, WholeRun
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect, ResolveTask, TransitionAttempt
from ..snapshot import Run, Task
from ..states import CANCELED, COMPLETED_WITH_ERRORS
from ..step_state import StepState, TaskState
from ..step_structure import Flow
from .base import StepType, complete_task, engine_held_task, fail_task, resolve_inputs
from .cases import is_choice
from .task_outcomes import outcome_of


class JoinState(TaskState, total=False):
    """State of a JOIN. `expected`: number of tasks to join. `has_cases`: one of them is a step with cases."""

    expected: int
    has_cases: bool


class Join(StepType):
    """Completes with the outputs of the joined tasks, by reference (execution §8.7)."""

    type = "JOIN"
    flow = Flow.JOIN
    ends_forks = True
    forwards_failures = True
    shows_isolation_group = True
    waits_for_tasks = True
    is_retried = False
    is_reopened = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        fork = fork_of(ctx.run, step, key)
        refs = list(step.joins) if fork is None else list(fork.step_state["forked"])
        step_state: JoinState = {"expected": len(set(refs))}
        if fork is not None and fork.step_state.get("has_cases"):
            step_state["has_cases"] = True
        yield engine_held_task(
            step, key, ctx.run, now, step_state=step_state, input={**inputs, "joinOn": refs}, output={}
        )

    def progress(self, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        known = {t.key: t for t in ctx.run.tasks.values() if is_joined(t, task)}
        if any(t.is_open for t in known.values()) or not ctx.run.has_changes_for(task, known):
            return
        state = cast(JoinState, task.step_state)
        missing = state.get("expected", len(set(task.step.joins))) - len(known)
        if state.get("has_cases"):
            if not ctx.run.is_whole:
                raise DataRequired({WholeRun()})
            # A dynamic branch that is a switch continues in the chosen case, unless that is empty.
            missing += sum(bool(is_choice(t.step) and t.step_state.get("head")) for t in known.values())
        outcomes: Any
        if ctx.run.is_whole:
            outcomes = [] if missing <= 0 else None
        elif missing > 0 and shares_tasks(task, ctx.run):
            raise DataRequired({WholeRun()})
        else:
            outcomes = ctx.require(JoinedOutcomes(task.key, frozenset(known), missing)) if missing > 0 else []
        if outcomes in (None, ABSENT):
            return
        yield from join_result(task, [*(outcome_of(t, ctx) for t in known.values()), *outcomes], now)

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        if "expected" not in task.step_state or not task.step.joins:
            return task.step_state
        return {**task.step_state, "expected": len(set(task.step.joins))}


def shares_tasks(join: Task, run: Run) -> bool:
    """Return True if another join waits for the same task. A task's row stores only one of its joins."""
    steps = (run.step(ref, join) for ref in join.step.joins)
    return any(step is not None and len(step.joined_by) > 1 for step in steps)


def is_joined(task: Task, join: Task) -> bool:
    """Return True if the join waits for this task."""
    if task.key.iteration_path != join.key.iteration_path:
        return False
    return task.joined_by == join.key.ref or join.key.ref in task.step.joined_by


def fork_of(run: Run, join: Step, key: Key) -> Task | None:
    """Return the dynamic fork before this join in this iteration; None after a FORK_JOIN."""
    forks = (
        t
        for t in run.tasks.values()
        if t.key.iteration_path == key.iteration_path and t.step.follower == join.ref and "forked" in t.step_state
    )
    return next(forks, None)


def join_result(task: Task, outcomes: list[TaskOutcome], now: int) -> Iterator[Effect]:
    """Yield the effects that end the join once all joined tasks have ended."""
    outcomes = sorted(outcomes, key=lambda outcome: outcome.seq)
    output = {str(outcome.key): outcome.output for outcome in outcomes if outcome.output}
    failures = [
        outcome for outcome in outcomes if outcome.status not in ("COMPLETED", COMPLETED_WITH_ERRORS, "SKIPPED")
    ]
    with_errors = [outcome for outcome in outcomes if outcome.status == COMPLETED_WITH_ERRORS]
    if failures and all(outcome.status == CANCELED for outcome in failures):
        yield from fail_task(task, now, _reasons(failures), output, event="cancel")
    elif failures:
        yield from fail_task(task, now, _reasons(failures), output)
    elif with_errors:
        reason = " ".join(f"{outcome.name}/{outcome.attempt_id}" for outcome in with_errors)
        yield TransitionAttempt(task.key, "complete", now, {"output": output, "reason": reason})
        yield ResolveTask(task.key, "complete_with_errors")
    else:
        yield from complete_task(task, now, output)


def _reasons(outcomes: list[TaskOutcome]) -> str:
    return " ".join(outcome.reason for outcome in outcomes if outcome.reason) or "A joined task did not succeed."
