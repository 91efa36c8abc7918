"""Complete active tasks whose step type finds that they are done."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from ..decision_context import DecisionContext
from ..effects import (
    AttachChild,
    AwaitWebhook,
    CreateTask,
    Effect,
    PublishEvent,
    ResolveTask,
    StartRun,
    TransitionAttempt,
    UpdateTask,
)
from ..errors import StepRefused
from ..snapshot import Attempt, Run, Task
from ..states import COMPLETED, FAILED, FAILED_FOR_GOOD, LEASED, PENDING
from ..step_types import enter, step_type_of
from ..step_types.base import fail_task

ATTEMPT_IDENTITY_FIELDS = (
    "id",
    "number",
    "seq",
    "status",
    "scheduled_at",
    "pending_since",
    "previous_id",
    "visible_at",
    "ended_at",
    "total_ends_at",
)
"""Fields of an attempt that stay when the attempt starts to execute its step."""
END_EVENTS = {COMPLETED: "complete", FAILED: "fail", FAILED_FOR_GOOD: "fail_for_good"}


def progress(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects of each open task that can be completed with the data loaded."""
    for task in run.open_tasks:
        if task.is_stopped:
            continue
        if task.attempt.status == COMPLETED:
            yield ResolveTask(task.key, "complete")
        elif task.attempt.status == LEASED or _is_to_begin(task, now):
            yield from _try_progress(task, ctx, now)


def _try_progress(task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    seen = ctx.at(task.step, task.key, task)
    try:
        if task.attempt.status == PENDING:
            yield from begin_attempt(task, seen, now)
        else:
            yield from list(step_type_of(task.step.type).progress(task, seen, now))
    except StepRefused as refused:
        yield from fail_task(task, now, refused.message, event="fail_for_good")


def _is_to_begin(task: Task, now: int) -> bool:
    """Return True for a new attempt of a step without a queue whose delay has passed."""
    return task.attempt.status == PENDING and not task.attempt.queue and task.attempt.visible_at <= now


def begin_attempt(task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects of executing a step in a further attempt, with the attempt's own id."""
    for effect in list(enter(task.step, task.key, ctx, now)):
        if isinstance(effect, CreateTask):
            yield from _apply_fresh_task(task, effect.task, now)
        elif isinstance(effect, StartRun) and effect.parent_attempt_id:
            yield StartRun(**{**_fields(effect), "parent_attempt_id": task.attempt.id})
        elif isinstance(effect, AttachChild | AwaitWebhook):
            yield replace(effect, attempt_id=task.attempt.id)
        elif isinstance(effect, PublishEvent):
            yield replace(effect, id=task.attempt.id)
        else:
            yield effect


def _apply_fresh_task(task: Task, fresh: Task, now: int) -> Iterator[Effect]:
    facts = {name: value for name, value in _fields(fresh.attempt).items() if name not in ATTEMPT_IDENTITY_FIELDS}
    if fresh.attempt.status == PENDING:
        # Its step was refused when control entered it, and is not any more: a worker executes it.
        yield UpdateTask(task.key, attempt_facts=facts)
    else:
        yield TransitionAttempt(task.key, "claim", now, facts)
    step_state, branch_steps = {**task.step_state, **fresh.step_state}, {**task.branch_steps, **fresh.branch_steps}
    facts_of_task = {"step": fresh.step, "step_state": step_state, "branch_steps": branch_steps}
    yield UpdateTask(task.key, {**facts_of_task, "iteration": fresh.iteration})
    if fresh.attempt.status in END_EVENTS:
        yield TransitionAttempt(task.key, END_EVENTS[fresh.attempt.status], now)


def _fields(value: Attempt | StartRun) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}
