"""Enter each step that has control and no task yet."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ..caching import apply_cached_result
from ..data_requests import TaskAt
from ..decision_context import DecisionContext, gather_values
from ..definition import Key
from ..effects import CreateTask, Effect, TransitionRun
from ..errors import RunCannotContinue, StepRefused
from ..failure_scopes import has_failure_handler
from ..frozen import fast_replace
from ..snapshot import NEVER, Run, Task
from ..states import FAILED_FOR_GOOD, SKIPPED
from ..step_types import enter, forked_references, step_type_of
from ..step_types.base import completed_task
from .finish_run import end_run
from .stop_at_breakpoints import enter_stopped, keep_open
from .validate_input import validate_inputs


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
    if run.debug and not run.is_held and (stopped := enter_stopped(step, key, seen, now)):
        return _assign_branches(stopped, key, source, run)
    try:
        effects = validate_inputs(list(enter(step, key, seen, now)), run, ctx, now)
    except StepRefused as refused:
        failed = completed_task(step, key, run, now, FAILED_FOR_GOOD, input={}, output={}, reason=refused.message)
        if isinstance(refused, RunCannotContinue) and step.is_fatal and not has_failure_handler(run, failed.task):
            return list(end_run(run, ctx, now, "fail", refused.message))
        effects = [failed]
    effects = effects if run.is_held else apply_cached_result(effects, seen, now)
    if run.is_held:
        return [_make_invisible(effect) if isinstance(effect, CreateTask) else effect for effect in effects]
    if run.debug:
        effects = [keep_open(effect, run, now) for effect in effects]
    return _assign_branches(effects, key, source, run)


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
