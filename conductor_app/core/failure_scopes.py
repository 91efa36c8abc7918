"""The steps around a task that take its failure, so that it does not end the run: which, and in which phase."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from .definition import Key
from .snapshot import Run, Task
from .step_types import kind_of


def enclosing(run: Run, task: Task) -> Iterator[tuple[Key, int]]:
    """The keys of the steps that take failures around a task, the innermost first, and the phase that it is in."""
    for depth in range(len(task.step.loops) - 1, -1, -1):
        step = run.step(task.step.loops[depth], task)
        if step is not None and kind_of(step.type).takes_failures:
            yield Key(step.ref, task.key.turn[:depth]), task.key.turn[depth]


def is_enclosed(run: Run, task: Task) -> bool:
    """Whether some step around the task takes its failure."""
    return bool(task.step.loops) and next(enclosing(run, task), None) is not None


def is_inside(task: Task, scope: Key, turn: int | None) -> bool:
    """Whether the task is in this turn of the step, or in any if none is given, however deep."""
    depth = len(scope.turn)
    if task.step.loops[depth : depth + 1] != (scope.ref,) or task.key.turn[:depth] != scope.turn:
        return False
    return turn is None or task.key.turn[depth] == turn


def is_handled(run: Run, task: Task, turns: Mapping[Key, int | None] = MappingProxyType({})) -> bool:
    """Whether a step around the task has gone on from its failure; `turns` are those in which some go on again."""
    for key, turn in enclosing(run, task):
        scope = run.tasks.get(key)
        if scope is not None and _has_gone_on(scope, turn, key in turns, turns.get(key)):
            return True
    return False


def _has_gone_on(scope: Task, turn: int, is_again: bool, again: int | None) -> bool:
    if scope.succeeded and not is_again:
        return True
    kind = kind_of(scope.step.type)
    return kind.has_phases and turn != (again or kind.failed_turn(scope) or scope.iteration)
