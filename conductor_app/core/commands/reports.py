"""Commands on one attempt: apply a worker's report, renew or release its lease, requeue it, and end its child run.

Claims are not commands: a claim changes rows without a decision (`tasks/commands/claims.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..caching import cache_task_result
from ..decision_context import Command, DecisionContext
from ..effects import Effect, OpenAttempt, RequeueAttempt, TransitionAttempt, UpdateTask
from ..errors import AlreadyResolved, Conflict, NotAllowedInState, quote_reason
from ..primitives import fast_replace
from ..rules.failures import next_attempt
from ..schemas import schema_violation
from ..snapshot import Run, Task
from ..states import LEASED, PENDING
from ..step_types import step_type_of
from ..timers import next_timer

EVENTS_OF_OUTCOMES = {
    "COMPLETED": "complete",
    "FAILED": "fail",
    "FAILED_FOR_GOOD": "fail_for_good",
    "CANCELED": "cancel",
    "TIMED_OUT": "expire",
}
"""Event of the attempt's state table for each outcome that ends an attempt."""


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a worker on its attempt.

    `outcome`: a key of EVENTS_OF_OUTCOMES, or IN_PROGRESS. `callback_seconds`: delay before a worker can
    claim the attempt again.
    """

    outcome: str
    output: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    callback_seconds: int = 0
    worker: str = ""
    merges: bool = False  # the output is merged into the stored one instead of replacing it
    is_kept: bool | None = None  # in progress, but no worker may claim it again; None: as the step's asyncComplete says
    lease: int | None = None  # `scheduled_at` of the attempt that the worker holds, if the report has it


def apply_report(attempt_id: str, report: Report) -> Command:
    """Return the command that applies a report. The command raises AlreadyResolved if the attempt has ended."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id, report.worker, report.lease)
        facts = {"output": _merged_output(task, report, ctx), "worker": report.worker or task.attempt.worker}
        facts |= {"reason": report.reason} if report.reason or report.outcome != "IN_PROGRESS" else {}
        if report.outcome == "COMPLETED":
            effect = _complete_attempt(task, facts, ctx, now)
            yield effect
            if effect.event == "complete":
                yield from cache_task_result(task, now)
        elif report.outcome in EVENTS_OF_OUTCOMES:
            yield TransitionAttempt(task.key, EVENTS_OF_OUTCOMES[report.outcome], now, facts)
        elif step_type_of(task.step.type).is_queued and not _keeps_lease(task, report):
            yield return_to_queue(task, report.callback_seconds, facts, now)
        else:
            yield TransitionAttempt(task.key, "renew", now, {**facts, "lease_ends_at": None})

    return command


def _complete_attempt(task: Task, facts: dict[str, Any], ctx: DecisionContext, now: int) -> TransitionAttempt:
    """Return the effect that completes the attempt, or fails it without retry if its output violates its schema."""
    if reason := schema_violation(task.step.policy.output_schema, facts["output"], "output", ctx):
        return TransitionAttempt(task.key, "fail_for_good", now, {**facts, "reason": reason})
    return TransitionAttempt(task.key, "complete", now, facts)


def _keeps_lease(task: Task, report: Report) -> bool:
    """Return True if an attempt in progress is reported on from outside, so that no other worker may claim it."""
    return task.step.async_complete if report.is_kept is None else report.is_kept


def renew_lease(attempt_id: str, worker: str = "") -> Command:
    """Return the command that renews the lease and changes nothing else (execution §4.4)."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id, worker)
        ends_at = now + task.attempt.lease_ms if task.attempt.lease_ms and task.attempt.status != PENDING else None
        attempt = fast_replace(task.attempt, lease_ends_at=ends_at)
        due_at = next_timer(task.step.policy, attempt, now)
        yield TransitionAttempt(task.key, "renew", now, {"lease_ends_at": ends_at, "due_at": due_at})

    return command


def return_to_queue(task: Task, callback_seconds: int, facts: dict[str, Any], now: int) -> TransitionAttempt:
    """Return the effect that releases the attempt: it waits in its queue again, under its number (execution §4.3)."""
    wait_ms = max(callback_seconds, 0) * 1000
    facts = {**facts, "visible_at": now + wait_ms, "pending_since": now, "callback_ms": wait_ms, "lease_ends_at": None}
    after = fast_replace(task.attempt, status=PENDING, **facts)
    return TransitionAttempt(task.key, "hand_back", now, {**facts, "due_at": next_timer(task.step.policy, after, now)})


def child_ended(attempt_id: str, child: dict[str, Any]) -> Command:
    """Return the command for the end of a child run.

    `child`: id, name, version, status, reason and output. The command raises AlreadyResolved if the task has ended or
    waits for another child.

    Raises:
        AlreadyResolved: when the command is applied and no task waits for this child.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id)
        if task.attempt.child_id != child["id"]:
            # The task was entered again under its id and waits for another child.
            raise AlreadyResolved(attempt=attempt_id)
        facts: dict[str, Any] = {"output": {**(child["output"] or {}), "subWorkflowId": child["id"]}}
        if child["status"] != "COMPLETED":
            facts["reason"] = (
                f"Sub workflow {child['name']}.{child['version']}/{child['id']} failure reason: "
                f"{quote_reason(child['reason'], child['id'])}"
            )
        else:
            yield _complete_attempt(task, facts, ctx, now)
            return
        outcome = {"TERMINATED": "CANCELED"}.get(child["status"], child["status"])
        yield TransitionAttempt(task.key, EVENTS_OF_OUTCOMES[outcome], now, facts)

    return command


def child_lost(attempt_id: str, child_id: str) -> Command:
    """Return the command that starts another child for a task whose child was deleted.

    Raises:
        AlreadyResolved: when the command is applied and no task waits for this child.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id)
        if task.attempt.child_id != child_id:
            raise AlreadyResolved(attempt=attempt_id)
        yield TransitionAttempt(task.key, "cancel", now, {"reason": f"Sub workflow {child_id} was deleted."})
        yield OpenAttempt(task.key, next_attempt(task, ctx, now, delay=0))

    return command


def require_open_task(run: Run, attempt_id: str, reporter: str = "", lease: int | None = None) -> Task:
    """Return the task whose open attempt this is.

    `reporter`: the worker that reports. `lease`: `scheduled_at` of the attempt that it holds, in epoch milliseconds.

    Raises:
        AlreadyResolved: when the attempt has ended, or was reopened under its id after the reporter's lease expired.
    """
    task = run.task_of_attempt(attempt_id)
    if task is None or not task.attempt.is_open or not run.is_open:
        raise AlreadyResolved(attempt=attempt_id)
    if lease is not None and lease != task.attempt.scheduled_at:
        raise AlreadyResolved(attempt=attempt_id)
    if reporter and reporter != task.attempt.worker and reporter in task.former_workers:
        raise AlreadyResolved(attempt=attempt_id)
    return task


def _merged_output(task: Task, report: Report, ctx: DecisionContext) -> dict[str, Any]:
    if not report.merges:
        return report.output
    return {**(ctx.attempt_payload(task, "output") or {}), **report.output}


def reset_callbacks(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that end callback delays and retry delays of pending tasks (execution §7.2).

    Raises:
        NotAllowedInState: when the run has ended.
    """
    if not run.is_open:
        raise NotAllowedInState(
            f"Workflow {run.id} is {run.status}. Callbacks can only be reset while it is running or paused."
        )
    for task in run.open_tasks:
        attempt = task.attempt
        if attempt.status == PENDING and attempt.queue and attempt.callback_ms and attempt.visible_at > now:
            facts: dict[str, Any] = {"visible_at": now, "pending_since": now, "callback_ms": 0}
            due_at = next_timer(task.step.policy, fast_replace(attempt, **facts), now)
            yield UpdateTask(task.key, attempt_facts={**facts, "due_at": due_at})


def requeue_attempt(attempt_id: str, facts: Mapping[str, Any]) -> Command:
    """Return the command that changes these fields of a pending attempt.

    If it ends a delay, the poll timeout starts again.

    Raises:
        Conflict: when the command is applied and the attempt is not in a queue.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id)
        if task.attempt.status != PENDING or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}. It is not waiting in a queue.")
        fresh = dict(facts)
        if task.attempt.visible_at > now and fresh.get("visible_at", task.attempt.visible_at) <= now:
            fresh |= {"pending_since": now, "callback_ms": 0}
        fresh["due_at"] = next_timer(task.step.policy, fast_replace(task.attempt, **fresh), now)
        yield RequeueAttempt(task.key, fresh)

    return command


def release_lease(attempt_id: str) -> Command:
    """Return the command that releases a leased attempt to its queue, as if its worker had done so; its number stays.

    Raises:
        Conflict: when the command is applied and no worker holds the attempt.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[TransitionAttempt]:
        task = require_open_task(run, attempt_id)
        if task.attempt.status != LEASED or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}. No worker holds it.")
        yield return_to_queue(task, 0, {}, now)

    return command
