"""Stop tasks at the breakpoints of their run, and end the stops that have expired."""

from collections.abc import Iterator
from typing import Any

from ..breakpoints import AFTER, BEFORE, build_stop, find_breakpoint, has_breakpoint, place_after, stops_of
from ..data_requests import DataRequired, WholeRun
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import CreateTask, Effect, ReleaseTask, RemoveStops, StopTask
from ..errors import StepRefused
from ..frozen import fast_replace
from ..snapshot import NEVER, Run, Task
from ..states import ACTIVE, COMPLETED, PENDING
from ..step_types import step_type_of
from ..step_types.base import new_task, resolve_inputs
from ..timers import next_timer
from .validate_input import validate_inputs


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
        yield release_task(by_attempt[id], stops[id], now)


def release_task(
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


def enter_stopped(step: Step, key: Key, ctx: DecisionContext, now: int) -> list[Effect]:
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
        effects = validate_inputs(list(kind.enter(step, key, ctx, now)), ctx.run, ctx, now)
    except StepRefused:
        return None
    [first, *others] = effects
    is_plain = not others and isinstance(first, CreateTask) and first.task.attempt.queue
    return first.task if is_plain and isinstance(first, CreateTask) and first.task.attempt.status == PENDING else None


def _unbegun_task(step: Step, key: Key, ctx: DecisionContext, now: int) -> Task:
    """Return the task of a step that the engine executes, before it has begun. Errors in its inputs appear then."""
    try:
        inputs = {} if step_type_of(step.type).forks else resolve_inputs(step, ctx, key, ctx.run, now)
    except StepRefused:
        inputs = {}
    return new_task(step, key, ctx.run, now, status=PENDING, input=inputs, output={})


def keep_open(effect: Effect, run: Run, now: int) -> Effect:
    """Return the creation of a task that ends at once as one of an open task, if it may stop after its completion."""
    if not isinstance(effect, CreateTask) or effect.task.status != COMPLETED:
        return effect
    task = effect.task
    return CreateTask(fast_replace(task, status=ACTIVE)) if has_breakpoint(run, task.key.ref, AFTER, now) else effect
