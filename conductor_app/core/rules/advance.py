"""Rules that move a run forward: enter steps, complete tasks, stop at breakpoints."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

from ..breakpoints import AFTER, BEFORE, build_stop, find_breakpoint, has_breakpoint, place_after, stops_of
from ..caching import apply_cached_result, find_cached_output
from ..data_requests import DataRequired, TaskAt, WholeRun
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import (
    AttachChild,
    AwaitWebhook,
    CreateTask,
    Effect,
    PublishEvent,
    ReleaseTask,
    RemoveStops,
    ResolveTask,
    StartRun,
    StopTask,
    TransitionAttempt,
    TransitionRun,
    UpdateTask,
)
from ..errors import RunCannotContinue, StepRefused
from ..primitives import fast_replace
from ..schemas import schema_violation
from ..snapshot import NEVER, Attempt, Run, Task
from ..states import ACTIVE, COMPLETED, FAILED, FAILED_FOR_GOOD, LEASED, PENDING, SKIPPED
from ..step_types import enter, forked_references, step_type_of
from ..step_types.base import completed_task, fail_task, gather_values, new_task, resolve_inputs
from ..timers import next_timer
from .finish import end_run, has_failure_handler

ATTEMPT_IDENTITY_FIELDS = (
    "id", "number", "seq", "status", "scheduled_at", "pending_since", "previous_id", "visible_at", "ended_at",
    "total_ends_at",
)  # fmt: skip
"""Fields of an attempt that stay when the attempt starts to execute its step."""
END_EVENTS = {COMPLETED: "complete", FAILED: "fail", FAILED_FOR_GOOD: "fail_for_good"}


def progress(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects of each open task that can be completed with the data loaded.

    Many loops or joins request their data together, because each request repeats the decision.
    """
    waiting = (task for task in run.open_tasks if not task.is_stopped)
    for effects in gather_values(partial(_progress_task, task, ctx, now) for task in waiting):
        yield from effects


def _progress_task(task: Task, ctx: DecisionContext, now: int) -> list[Effect]:
    if task.attempt.status == COMPLETED:
        return [ResolveTask(task.key, "complete")]
    if task.attempt.status == LEASED or _is_to_begin(task, now):
        return list(_try_progress(task, ctx, now))
    return []


def _try_progress(task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    seen = ctx.at(task.step, task.key, task)
    try:
        if task.attempt.status == PENDING:
            yield from _begin_attempt(task, seen, now)
        else:
            yield from list(step_type_of(task.step.type).progress(task, seen, now))
    except StepRefused as refused:
        yield from fail_task(task, now, refused.message, event="fail_for_good")


def _is_to_begin(task: Task, now: int) -> bool:
    """Return True for a new attempt of a step without a queue whose delay has passed."""
    return task.attempt.status == PENDING and not task.attempt.queue and task.attempt.visible_at <= now


def _begin_attempt(task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
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


def use_cached_output(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that complete a new run with a cached output. A restarted run is executed."""
    if run.has_begun or run.revision or (cached := find_cached_output(run, ctx)) is None:
        return
    source, output = cached
    reason = f"Output reused from run {source}, which has the same cache key."
    yield from end_run(run, ctx, now, "complete", reason, output=dict(output), needs_whole=False)


def stop_at_breakpoints(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects of stops that begin after an attempt has ended, and of stops that have expired."""
    if not run.debug:
        return
    yield from _end_stops(run, now)
    for task in run.open_tasks:
        place = place_after(task.attempt)
        if not place or task.has_stopped:
            continue
        if found := find_breakpoint(run, task.key.ref, place, ctx.at(task.step, task.key, task), now):
            yield StopTask(task.key, build_stop(*found, task, now))


def _end_stops(run: Run, now: int) -> Iterator[Effect]:
    """Release the tasks whose stop has expired, and remove the stops that a change from outside has ended."""
    stops = stops_of(run.debug)
    if not stops:
        return
    by_attempt = {task.attempt.id: task for task in run.tasks.values()}
    stopped = {task.attempt.id for task in run.tasks.values() if task.is_stopped}
    expired = {id for id, stop in stops.items() if stop["until"] <= now}
    if expired - by_attempt.keys() and not run.is_whole:
        raise DataRequired({WholeRun()})
    if ended := frozenset(id for id in stops if id not in stopped and (run.is_whole or id in by_attempt)):
        yield RemoveStops(ended)
    for id in sorted(expired & stopped):
        yield continue_task(by_attempt[id], stops[id], now)


def continue_task(
    task: Task, stop: dict[str, Any] | Any, now: int, attempt_facts: dict[str, Any] | None = None, **step_state: Any
) -> ReleaseTask:
    """Return the effect that lets a stopped task continue. Its timers stood still while it was stopped."""
    attempt = fast_replace(task.attempt, **(attempt_facts or {}))
    facts = dict(attempt_facts or {})
    if attempt.total_ends_at != NEVER:
        facts["total_ends_at"] = attempt.total_ends_at + now - stop["since"]
    if attempt.status == PENDING:
        facts |= {"visible_at": now + attempt.delay_ms, "pending_since": now}
        released = fast_replace(attempt, **facts)
        due_at = next_timer(task.step.policy, released, now)
        # The engine executes an attempt without a queue when its delay has passed, so the delay is a timer.
        facts["due_at"] = due_at if attempt.queue else min(due_at, max(released.visible_at, now + 1))
    return ReleaseTask(task.key, facts, step_state)


def advance(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects of entering every step that has control and no task."""
    if run.is_held and run.has_begun:
        return
    wanted = {key: source for key, source in pending_entries(run) if key not in run.tasks}
    if run.last_retried_at and not run.is_whole:
        # A permissive task that is retried after the end of its run may already have a successor.
        seen = gather_values(partial(ctx.require, TaskAt(key)) for key in wanted)
        wanted = {key: source for (key, source), task in zip(wanted.items(), seen, strict=True) if task is None}
    placed = enumerate(wanted.items())
    yield from enter_together(partial(enter_step, key, source, ctx, now, place) for place, (key, source) in placed)


def enter_together(entries: Iterable[Callable[[], list[Effect]]]) -> Iterator[Effect]:
    """Yield the effects of entering several steps at once; if one of them ends the run, its effects only."""
    found = list(gather_values(entries))
    transition = next(
        (effects for effects in found if any(isinstance(effect, TransitionRun) for effect in effects)), None
    )
    for effects in found if transition is None else [transition]:
        yield from effects


def pending_entries(run: Run) -> Iterator[tuple[Key, Task | None]]:
    """Yield the key of each step that has control, with the task that control comes from."""
    if not run.has_begun and run.definition.first:
        yield from _skip_completed(run, Key(run.definition.first), None)
    for source in sorted(run.sources, key=lambda task: task.seq):
        if source.status == SKIPPED or source.is_control_removed or source.waits_to_begin:
            continue
        for key in step_type_of(source.step.type).successors(source):
            yield from _skip_completed(run, key, source)


def _skip_completed(run: Run, key: Key, source: Task | None) -> Iterator[tuple[Key, Task | None]]:
    """Yield the key, or the key of the next step if its task was skipped before control reached it."""
    while key in run.tasks and run.tasks[key].status == SKIPPED:
        task = run.tasks[key]
        if not task.step.follower or task.is_control_removed:
            return
        key = Key(task.step.follower, key.iteration_path)
    yield key, source


def enter_step(key: Key, source: Task | None, ctx: DecisionContext, now: int, place: int = 0) -> list[Effect]:
    """Return the effects of entering a step.

    `place`: the number of steps entered before it in the same decision.
    """
    step = ctx.run.step(key.ref, source)
    if step is None or (ctx.run.is_held and not step_type_of(step.type).is_queued):
        return []
    seen = ctx.at(step, key, source, place)
    run = seen.run
    if run.debug and not run.is_held and (stopped := _enter_stopped(step, key, seen, now)):
        return _assign_branches(stopped, key, source, run)
    try:
        effects = _validate_inputs(list(enter(step, key, seen, now)), run, ctx, now)
    except StepRefused as refused:
        failed = completed_task(step, key, run, now, FAILED_FOR_GOOD, input={}, output={}, reason=refused.message)
        if isinstance(refused, RunCannotContinue) and step.is_fatal and not has_failure_handler(run, failed.task):
            return list(end_run(run, ctx, now, "fail", refused.message))
        effects = [failed]
    effects = effects if run.is_held else apply_cached_result(effects, seen, now)
    if run.is_held:
        return [_make_invisible(effect) if isinstance(effect, CreateTask) else effect for effect in effects]
    if run.debug:
        effects = [_keep_open(effect, run, now) for effect in effects]
    return _assign_branches(effects, key, source, run)


def _enter_stopped(step: Step, key: Key, ctx: DecisionContext, now: int) -> list[Effect]:
    """Return the effects of entering a step at a breakpoint before it; none if no breakpoint stops there.

    The task exists, so that every page shows where the run stands, but no worker can claim it and no engine begins it.
    """
    found = find_breakpoint(ctx.run, key.ref, BEFORE, ctx, now)
    if found is None:
        return []
    executed = _as_executed(step, key, ctx, now)
    created = _queued_task(executed, key, ctx, now) or _unbegun_task(executed, key, ctx, now)
    task = fast_replace(created, attempt=fast_replace(created.attempt, visible_at=NEVER, due_at=NEVER))
    return [CreateTask(task), StopTask(key, build_stop(*found, task, now))]


def _keep_open(effect: Effect, run: Run, now: int) -> Effect:
    """Return the creation of a task that ends at once as one of an open task, if it may stop after its completion."""
    if not isinstance(effect, CreateTask) or effect.task.status != COMPLETED:
        return effect
    task = effect.task
    return CreateTask(fast_replace(task, status=ACTIVE)) if has_breakpoint(run, task.key.ref, AFTER, now) else effect


def _unbegun_task(step: Step, key: Key, ctx: DecisionContext, now: int) -> Task:
    """Return the task of a step that the engine executes, before it has begun. Errors in its inputs appear then."""
    try:
        inputs = {} if step_type_of(step.type).forks else resolve_inputs(step, ctx, key, ctx.run, now)
    except StepRefused:
        inputs = {}
    return new_task(step, key, ctx.run, now, status=PENDING, input=inputs, output={})


def _validate_inputs(effects: list[Effect], run: Run, ctx: DecisionContext, now: int) -> list[Effect]:
    """Return the effects of entering a step, or a failed task if its input or output violates a schema."""
    for effect in effects:
        if isinstance(effect, CreateTask) and (reason := _input_violation(effect.task, ctx)):
            return [_refuse_task(effect.task, run, now, reason)]
    return effects


def _input_violation(task: Task, ctx: DecisionContext) -> str:
    policy, attempt = task.step.policy, task.attempt
    reason = schema_violation(policy.input_schema, attempt.input, "input", ctx)
    if reason or attempt.status != COMPLETED:
        return reason
    return schema_violation(policy.output_schema, attempt.output, "output", ctx)


def _refuse_task(task: Task, run: Run, now: int, reason: str) -> CreateTask:
    facts = {"input": task.attempt.input, "output": {}, "reason": reason, "step_state": task.step_state}
    return completed_task(task.step, task.key, run, now, FAILED_FOR_GOOD, **facts, iteration=task.iteration)


def _as_executed(step: Step, key: Key, ctx: DecisionContext, now: int) -> Step:
    try:
        return step_type_of(step.type).as_executed(step, key, ctx, now)
    except StepRefused:
        return step


def _queued_task(step: Step, key: Key, ctx: DecisionContext, now: int) -> Task | None:
    """Return the task of a step for workers with its inputs, None if the engine executes the step itself."""
    kind = step_type_of(step.type)
    if not kind.is_queued:
        return None
    try:
        effects = _validate_inputs(list(enter(step, key, ctx, now)), ctx.run, ctx, now)
    except StepRefused:
        return None
    [first, *others] = effects
    is_plain = not others and isinstance(first, CreateTask) and first.task.attempt.queue
    return first.task if is_plain and isinstance(first, CreateTask) and first.task.attempt.status == PENDING else None


def _assign_branches(effects: list[Effect], key: Key, source: Task | None, run: Run) -> list[Effect]:
    """Assign the created tasks to their dynamic branch, if the step is part of one."""
    if source is None or key.ref in run.definition.steps:
        return effects
    return [assign_branch(effect, source) if isinstance(effect, CreateTask) else effect for effect in effects]


def _make_invisible(effect: CreateTask) -> CreateTask:
    """Return the first task of a run held by its concurrency limit: pending, and visible when the run is released."""
    return CreateTask(
        fast_replace(effect.task, attempt=fast_replace(effect.task.attempt, visible_at=NEVER, due_at=NEVER))
    )


def assign_branch(effect: CreateTask, source: Task) -> CreateTask:
    """Assign a task to its dynamic branch. The head of the branch stores the document of the branch."""
    task = effect.task
    # Thousands of branches share the steps of their fork. A copy for each branch would need millions of entries.
    branch_steps = {**source.branch_steps, **task.branch_steps} if task.branch_steps else source.branch_steps
    if source.branch_head and task.key.ref not in forked_references(source):
        return CreateTask(fast_replace(task, branch_head=source.branch_head, branch_steps=branch_steps))
    step_state = {**task.step_state, "document": dict(task.step.document), "loops": list(task.step.loops)}
    return CreateTask(fast_replace(task, branch_head=task.key, step_state=step_state, branch_steps=branch_steps))
