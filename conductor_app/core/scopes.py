"""The steps around a task that take its failure, so that it does not end the run: which, and in which phase."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from .definition import Key
from .snapshot import Run, Task
from .steps import kind_of


def enclosing(run: Run, task: Task) -> Iterator[tuple[Key, int]]:
    """The keys of the steps that take failures around a task, the innermost first, and the phase that it is in."""
    for depth in range(len(task.step.loops) - 1, -1, -1):
        step = run.step(task.step.loops[depth], task)
        if step is not None and kind_of(step.type).takes_failures:
            yield Key(step.ref, task.key.turn[:depth]), task.key.turn[depth]


def is_enclosed(run: Run, task: Task) -> bool:
    """Whether some step around the task takes its failure."""
    return bool(task.step.loops) and next(enclosing(run, task), None) is not None


def is_inside(task: Task, scope: Key, phase: int) -> bool:
    """Whether the task is in this phase of the step, however deep."""
    depth = len(scope.turn)
    return task.step.loops[depth : depth + 1] == (scope.ref,) and task.key.turn[: depth + 1] == (*scope.turn, phase)


def is_handled(run: Run, task: Task, turns: Mapping[Key, int | None] = MappingProxyType({})) -> bool:
    """Whether a step around the task has gone on from its failure; `turns` are those in which some go on again."""
    for key, phase in enclosing(run, task):
        scope = run.tasks.get(key)
        if scope is not None and phase != (turns.get(key) or _failed_or_present(scope)):
            return True
    return False


def _failed_or_present(scope: Task) -> int | None:
    """The phase whose outcome the step still is to answer for; None where all is well."""
    if scope.succeeded:
        return None
    turn = kind_of(scope.step.type).failed_turn(scope)
    return scope.iteration if turn is None else turn
