"""Rules that end a run: its output, canceled tasks, messages to other runs, and its failure workflow."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..caching import cache_run_output
from ..child_runs import require_depth
from ..data_requests import (
    WORKFLOW_TARGET,
    DataRequired,
    LastOutput,
    OpenTaskInside,
    RemainingSummary,
    RemainingTasks,
    WholeRun,
)
from ..decision_context import DecisionContext
from ..definition import Key
from ..effects import Effect, ResolveTask, SendMessage, StartRun, TransitionAttempt, TransitionRun
from ..errors import StepRefused, shorten_reason
from ..expressions import quote_value
from ..primitives import derived_id
from ..schemas import schema_violation
from ..snapshot import Run, Task
from ..states import CANCELED, RUN, TIMED_OUT
from ..step_types import run_ending, step_type_of
from ..step_types.base import fail_task

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
        yield from end_run(run, ctx, now, EVENTS.get(failed.status, "fail"), _failure_sentence(failed), failed)


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


def _failure_sentence(task: Task) -> str:
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


def enforce_limits(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that fail a run with too many tasks or with too long a history."""
    if run.is_open and (reason := _exceeded_limit(run)):
        yield from end_run(run, ctx, now, "fail", reason)


def _exceeded_limit(run: Run) -> str:
    """Return which limit the run exceeds, or an empty text."""
    limits = run.definition.limits
    if limits.max_tasks and run.next_seq > limits.max_tasks + 1:
        return f"The workflow has created {limits.max_tasks} tasks, which is the maximum (MAX_TASKS_PER_WORKFLOW)."
    # Each decision increases the revision and writes one entry, so the limit needs no statement of its own.
    if limits.max_history and run.revision >= limits.max_history:
        return (
            f"The history of the workflow has {limits.max_history} entries, which is the maximum "
            "(MAX_HISTORY_ENTRIES). Start a new workflow for the remaining work."
        )
    return ""


FAILURE_KEY = "conductor.failure_workflow"


def end_run(
    run: Run,
    ctx: DecisionContext,
    now: int,
    event: str,
    reason: str = "",
    failed: Task | None = None,
    spared: Key | None = None,
    output: dict[str, Any] | None = None,
    with_failure: bool = True,
    needs_whole: bool = True,
) -> Iterator[Effect]:
    """End the run: cancel everything that is open, and notify its parent and its children (execution §2.5).

    `failed`: the task that caused the end. `spared`: a task whose attempt has already ended. `output`: replaces the
    run's own output. `with_failure`: start the failure workflow unless the run completes. `needs_whole`: read all
    tasks of the run first.

    Raises:
        DataRequired: when data is not loaded.
    """
    if needs_whole and not run.is_whole:
        raise DataRequired({WholeRun()})
    output = _run_output(run, ctx) if output is None else output
    if event == "complete" and (violation := schema_violation(run.definition.output_schema, output, "output", ctx)):
        yield from end_run(run, ctx, now, "fail", violation, output=output)
        return
    reason = shorten_reason(reason)
    facts: dict[str, Any] = {"reason": reason, "output": output}
    if failed is not None and not run.failed_attempt_id:
        facts["failed_attempt_id"] = failed.attempt.id
    status = RUN.after(run.status, event)
    failure_workflow = (
        list(_start_failure_workflow(run, ctx, now, status, reason, failed))
        if with_failure and event != "complete"
        else []
    )
    facts["output"] |= _failure_workflow_output(failure_workflow)
    yield TransitionRun(event, now, facts)
    if event == "complete" and run.has_begun:
        yield from cache_run_output(run, ctx, now)
    for task in run.open_tasks:
        yield from cancel_task(task, now, reason or f"The workflow is {status}.", is_moved=task.key == spared)
    yield from (effect for effect in failure_workflow if isinstance(effect, StartRun))
    yield from _notify_parent_and_limit(run)


def cancel_task(task: Task, now: int, reason: str, is_moved: bool = False) -> Iterator[Effect]:
    """Cancel an open task, and the child run that it waits for."""
    if is_moved:
        yield ResolveTask(task.key, "time_out")
        return
    if task.attempt.is_open:
        yield TransitionAttempt(task.key, "cancel", now, {"reason": task.attempt.reason or reason})
    yield ResolveTask(task.key, "cancel")
    if task.attempt.child_id and task.attempt.is_open:
        yield SendMessage(
            task.attempt.child_id, "terminate", {"reason": f"Parent workflow has been terminated with reason: {reason}"}
        )


def _notify_parent_and_limit(run: Run) -> Iterator[Effect]:
    """Send the end of the run to its parent and to its concurrency limit."""
    if run.parent_id:
        yield SendMessage(run.parent_id, "child_ended", {"attempt": run.parent_attempt_id, "child": run.id})
    if run.limit_key:
        yield SendMessage("", "release", {"name": run.definition.name, "key": run.limit_key})


def _run_output(run: Run, ctx: DecisionContext) -> dict[str, Any]:
    """Return the output parameters of the definition, or the output of the last created task (execution §2.4)."""
    if run.definition.output_parameters:
        return ctx.resolve(dict(run.definition.output_parameters), what="The workflow's output")
    last = max(run.tasks.values(), key=lambda task: task.attempt.seq, default=None)
    if last is not None and (run.is_whole or last.attempt.seq == run.next_seq - 1):
        return dict(ctx.attempt_payload(last, "output") or {})
    if last is None and (run.is_whole or not run.has_begun):
        return {}
    seq, output = ctx.require(LastOutput(frozenset(run.tasks)))
    if last is not None and last.attempt.seq > seq:
        output = ctx.attempt_payload(last, "output")
    return dict(output or {})


def _start_failure_workflow(
    run: Run, ctx: DecisionContext, now: int, status: str, reason: str, failed: Task | None
) -> Iterator[Any]:
    """Yield the failure workflow with its input (execution §6), or the reason why it cannot start."""
    name = run.definition.document.get("failureWorkflow")
    if not isinstance(name, str) or not name.strip():
        return
    try:
        require_depth(run)
        written, name = name, _failure_workflow_name(name, ctx)
        ctx.require_use(WORKFLOW_TARGET, name, is_authored=written == name)
        version = run.definition.document.get("failureWorkflowVersion")
        definition = ctx.definition(name, int(version) if version else None)
    except (StepRefused, TypeError, ValueError) as error:
        yield f"Error workflow {name} failed to start. reason: {error}"
        return
    if definition is None:
        yield f"Error workflow {name} failed to start. reason: No such workflow definition: {name}"
        return
    about = {"workflowId": run.id, "reason": reason, "failureStatus": status}
    about |= {"failureTaskId": failed.attempt.id} if failed is not None else {}
    yield StartRun(
        derived_id(now, run.id, run.revision, "failure"),
        definition,
        {**ctx.input(), **about},
        run.correlation_id,
        domains=dict(run.domains),
        is_failure_workflow=True,
    )


def _failure_workflow_name(name: str, ctx: DecisionContext) -> str:
    if name.startswith("${"):
        value = ctx.resolve(name)
    elif name.startswith("$"):
        parts = name.split(".")
        value = ctx.input().get(parts[2]) if len(parts) > 2 else None
    else:
        return name
    if not isinstance(value, str) or not value:
        raise StepRefused(f"`failureWorkflow` {name} must be the name of a workflow, not {quote_value(value)}.")
    return value


def _failure_workflow_output(failure_workflow: list[Any]) -> dict[str, Any]:
    if not failure_workflow:
        return {}
    return {FAILURE_KEY: failure_workflow[0].id if isinstance(failure_workflow[0], StartRun) else failure_workflow[0]}


def enclosing_scopes(run: Run, task: Task) -> Iterator[tuple[Key, int]]:
    """Yield the key of each enclosing step that handles failures, innermost first, and the task's iteration in it."""
    for depth in range(len(task.step.loops) - 1, -1, -1):
        step = run.step(task.step.loops[depth], task)
        if step is not None and step_type_of(step.type).handles_failures:
            yield Key(step.ref, task.key.iteration_path[:depth]), task.key.iteration_path[depth]


def has_failure_handler(run: Run, task: Task) -> bool:
    """Return True if an enclosing step handles the failure of the task."""
    return bool(task.step.loops) and next(enclosing_scopes(run, task), None) is not None


def is_inside_scope(task: Task, scope: Key, iteration: int | None) -> bool:
    """Return True if the task is in this iteration of the step (None: in any), at any depth."""
    depth = len(scope.iteration_path)
    if task.step.loops[depth : depth + 1] != (scope.ref,) or task.key.iteration_path[:depth] != scope.iteration_path:
        return False
    return iteration is None or task.key.iteration_path[depth] == iteration


def is_failure_handled(run: Run, task: Task, iterations: Mapping[Key, int | None] = MappingProxyType({})) -> bool:
    """Return True if an enclosing step continued after the failure of the task.

    `iterations`: steps that are entered again, with the iteration in which they continue.
    """
    for key, iteration in enclosing_scopes(run, task):
        scope = run.tasks.get(key)
        if scope is not None and _has_continued(scope, iteration, key in iterations, iterations.get(key)):
            return True
    return False


def _has_continued(scope: Task, iteration: int, is_again: bool, again: int | None) -> bool:
    if scope.succeeded and not is_again:
        return True
    kind = step_type_of(scope.step.type)
    return kind.has_phases and iteration != (again or kind.failed_iteration(scope) or scope.iteration)


def catch_failure(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects by which the innermost enclosing scope handles a failed task."""
    failed = (task for task in run.tasks.values() if task.step.loops and task.failed_fatally)
    for task in sorted(failed, key=lambda task: task.seq):
        key, iteration = next(enclosing_scopes(run, task), (None, 0))
        scope = run.tasks.get(key) if key else None
        if scope is not None and _is_responsible(scope, iteration):
            yield from _cancel_siblings(run, ctx, scope, iteration, task, now)
            yield from step_type_of(scope.step.type).on_child_failure(scope, task, ctx, now)
            return


def _is_responsible(scope: Task, iteration: int) -> bool:
    has_it = not step_type_of(scope.step.type).has_phases or scope.iteration == iteration
    return has_it and scope.is_open and scope.attempt.is_open


def _cancel_siblings(
    run: Run, ctx: DecisionContext, scope: Task, iteration: int, failed: Task, now: int
) -> Iterator[Effect]:
    """Cancel the open tasks beside the failed one. Usually there are none, and the whole run need not be read."""
    stops = None if step_type_of(scope.step.type).stops_all_iterations else iteration
    if not run.is_whole and (stops is None or ctx.require(_open_task_inside(run, scope, stops))):
        raise DataRequired({WholeRun()})
    for sibling in run.open_tasks:
        if is_inside_scope(sibling, scope.key, stops):
            yield from cancel_task(sibling, now, f"Canceled because {failed.key} failed.")


def _open_task_inside(run: Run, scope: Task, iteration: int) -> OpenTaskInside:
    return OpenTaskInside(Key(*scope.key), iteration, scope.step.inside | {scope.key.ref}, frozenset(run.tasks))
