"""Effects that end a run: its output, canceled tasks, messages to other runs, and its failure workflow."""

from collections.abc import Iterator
from typing import Any

from ..caching import cache_run_output
from ..child_run import require_depth
from ..data_requests import WORKFLOW_TARGET, DataRequired, LastOutput, WholeRun
from ..decision_context import DecisionContext
from ..definition import Key
from ..effects import Effect, ResolveTask, SendMessage, StartRun, TransitionAttempt, TransitionRun
from ..errors import StepRefused
from ..expressions import quote_value
from ..ids import derived_id
from ..reasons import shorten_reason
from ..schema_check import schema_violation
from ..snapshot import Run, Task
from ..states import RUN

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
    output = run_output(run, ctx) if output is None else output
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
    yield from notify_parent_and_limit(run)


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


def notify_parent_and_limit(run: Run) -> Iterator[Effect]:
    """Send the end of the run to its parent and to its concurrency limit."""
    if run.parent_id:
        yield SendMessage(run.parent_id, "child_ended", {"attempt": run.parent_attempt_id, "child": run.id})
    if run.limit_key:
        yield SendMessage("", "release", {"name": run.definition.name, "key": run.limit_key})


def run_output(run: Run, ctx: DecisionContext) -> dict[str, Any]:
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
