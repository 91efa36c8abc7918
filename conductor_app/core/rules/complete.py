"""End the run when every task is done, or when a fatal failure makes further work pointless."""

from collections.abc import Iterable, Iterator

from ..data_requests import DataRequired, RemainingSummary, RemainingTasks, WholeRun
from ..decision_context import DecisionContext
from ..definition import Key
from ..effects import Effect
from ..failure_scopes import has_failure_handler
from ..snapshot import Run, Task
from ..states import CANCELED, TIMED_OUT
from ..step_types import run_ending, step_type_of
from ..step_types.base import fail_task
from .finish_run import end_run

EVENTS = {TIMED_OUT: "time_out", CANCELED: "terminate"}
"""Event that ends the run, by the status of the task that failed; `fail` for any other status."""
STATUS_OF_RUN = {TIMED_OUT: "TIMED_OUT", CANCELED: "TERMINATED"}


def abort(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that end the run after a TERMINATE task or a fatal failure, although other tasks are open."""
    if ending := _first_created(task for task in run.tasks.values() if run_ending(task)):
        yield from _end_by_terminate(run, ctx, now, ending)
    elif failed := _first_created(
        task for task in run.tasks.values() if task.failed_fatally and not has_failure_handler(run, task)
    ):
        yield from end_run(run, ctx, now, EVENTS.get(failed.status, "fail"), failure_sentence(failed), failed)


def complete(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that end the run when all of its tasks are done."""
    if run.has_begun or not run.definition.first:
        yield from _complete_when_done(run, ctx, now)


def _first_created(tasks: Iterable[Task]) -> Task | None:
    return min(tasks, key=lambda task: task.seq, default=None)


def _end_by_terminate(run: Run, ctx: DecisionContext, now: int, task: Task) -> Iterator[Effect]:
    ending = run_ending(task)
    if ending is None:
        return
    event = ending.event
    status = {"complete": "COMPLETED", "fail": "FAILED"}.get(event, "TERMINATED")
    reason = ending.reason or f"Workflow is {status} by TERMINATE task: {task.attempt.id}"
    failed = None if event == "complete" else task
    yield from end_run(run, ctx, now, event, reason, failed, output=dict(ctx.attempt_payload(task, "output")))


def failure_sentence(task: Task) -> str:
    """Return the reason for the failure of a run in the format of Conductor (execution §1.4)."""
    status = STATUS_OF_RUN.get(task.status, "FAILED")
    return f"Task {task.attempt.id} failed with status: {status} and reason: '{task.attempt.reason}'"


def _complete_when_done(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    waiting = run.open_tasks
    if any(task.is_stopped for task in waiting):
        return
    if run.is_held or ctx.knows_open_tasks or any(not step_type_of(task.step.type).waits_for_tasks for task in waiting):
        return
    remaining = RemainingSummary() if run.is_whole else ctx.require(RemainingTasks(frozenset(run.tasks)))
    if remaining.is_at_work:
        return
    if waiting or remaining.is_open:
        yield from _resolve_deadlock(run, ctx, now)
        return
    failures = _permissive_failures(run) + list(remaining.permissive_failures)
    if not failures:
        yield from end_run(run, ctx, now, "complete", needs_whole=False)
        return
    if not run.is_whole:
        raise DataRequired({WholeRun()})
    reason = ". ".join(f"Task {id} failed with status: {status} and reason: '{why}'" for id, status, why in failures)
    first = next((task for task in run.tasks.values() if task.attempt.id == failures[0][0]), None)
    yield from end_run(run, ctx, now, "fail", reason, first)


def _resolve_deadlock(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Handle a run in which all open tasks wait for other tasks: a join that cannot be reached fails (§11 row 49)."""
    if not run.is_whole:
        raise DataRequired({WholeRun()})
    if any(task.is_stopped for task in run.open_tasks):
        return
    for task in run.open_tasks:
        if effects := list(step_type_of(task.step.type).on_deadlock(task, ctx, now)):
            yield from effects
            return
    first = min(run.open_tasks, key=lambda task: (bool(task.step.heads), task.seq))
    yield from fail_task(first, now, _deadlock_reason(first, run), event="fail_for_good")


def _deadlock_reason(waiting: Task, run: Run) -> str:
    """Return why the task cannot complete, with the joined tasks that have not ended."""
    joined = {ref: run.tasks.get(Key(ref, waiting.key.iteration_path)) for ref in waiting.step.joins}
    missing = [ref for ref, task in joined.items() if task is None or task.is_open]
    reason = f"{waiting.key} cannot complete: no open task leads to {', '.join(missing) or 'its turn'}."
    if not missing:
        return reason
    return f"{reason} A retry fails in the same way: correct `joinOn` in the definition, and upgrade the run to it."


def _permissive_failures(run: Run) -> list[tuple[str, str, str]]:
    """Return the permissive tasks that did not succeed; they fail the run after all other tasks (execution §1.3)."""
    tasks = sorted(run.tasks.values(), key=lambda task: task.seq)
    return [
        (task.attempt.id, task.status, task.attempt.reason)
        for task in tasks
        if not task.is_open and not task.succeeded and not has_failure_handler(run, task)
    ]
