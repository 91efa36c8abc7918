"""A failure inside a step that takes failures goes to that step, and what else goes on beside it is canceled."""

from collections.abc import Iterator

from ..data_requests import AnyInside, Asked, Whole
from ..decision_context import Knowledge
from ..definition import Key
from ..effects import Effect
from ..failure_scopes import enclosing, is_inside
from ..snapshot import Run, Task
from ..step_types import kind_of
from .finish_run import cancel


def rescue(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """The innermost step around a failed task takes the failure, as long as that is its business."""
    failed = (task for task in run.tasks.values() if task.step.loops and task.failed_fatally)
    for task in sorted(failed, key=lambda task: task.seq):
        key, turn = next(enclosing(run, task), (None, 0))
        scope = run.tasks.get(key) if key else None
        if scope is not None and _takes(scope, turn):
            yield from _stopped(run, know, scope, turn, task, now)
            yield from kind_of(scope.step.type).take(scope, task, know, now)
            return


def _takes(scope: Task, turn: int) -> bool:
    has_it = not kind_of(scope.step.type).has_phases or scope.iteration == turn
    return has_it and scope.is_open and scope.attempt.is_open


def _stopped(run: Run, know: Knowledge, scope: Task, turn: int, failed: Task, now: int) -> Iterator[Effect]:
    """What goes on beside the failed task is canceled. Most often nothing does, and the whole run need not be read."""
    stops = None if kind_of(scope.step.type).takes_every_turn else turn
    if not run.is_whole and (stops is None or know.ask(_any_besides(run, scope, stops))):
        raise Asked({Whole()})
    for other in run.open_tasks:
        if is_inside(other, scope.key, stops):
            yield from cancel(other, now, f"{failed.key} failed beside it.")


def _any_besides(run: Run, scope: Task, turn: int) -> AnyInside:
    return AnyInside(Key(*scope.key), turn, scope.step.inside | {scope.key.ref}, frozenset(run.tasks))
