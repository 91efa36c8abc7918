"""Pass a failure inside a TRY or a FOR_EACH to that step, and cancel the tasks beside it."""

from collections.abc import Iterator

from ..data_requests import DataRequired, OpenTaskInside, WholeRun
from ..decision_context import DecisionContext
from ..definition import Key
from ..effects import Effect
from ..failure_scopes import enclosing_scopes, is_inside_scope
from ..snapshot import Run, Task
from ..step_types import step_type_of
from .finish_run import cancel_task


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
