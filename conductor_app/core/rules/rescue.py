"""A failure inside a step that takes failures goes to that step, and what else goes on beside it is canceled."""

from collections.abc import Iterator

from ..effects import Effect
from ..knowledge import Knowledge
from ..questions import Asked, Whole
from ..scopes import enclosing, is_inside
from ..snapshot import Run
from ..steps import kind_of
from .endings import cancel


def rescue(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """The innermost step around a failed task takes the failure, as long as it is in the phase where that happened."""
    failed = (task for task in run.tasks.values() if task.step.loops and task.failed_fatally)
    for task in sorted(failed, key=lambda task: task.seq):
        key, phase = next(enclosing(run, task), (None, 0))
        scope = run.tasks.get(key) if key else None
        if scope is None or scope.iteration != phase or not (scope.is_open and scope.attempt.is_open):
            continue
        if not run.is_whole:
            raise Asked({Whole()})
        for other in run.open_tasks:
            if is_inside(other, scope.key, phase):
                yield from cancel(other, now, f"{task.key} failed beside it.")
        yield from kind_of(scope.step.type).take(scope, task, know, now)
        return
