"""The steps around a task that take its failure, so that it does not end the run: which, and in which phase."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from .definition import Key
from .snapshot import Run, Task
from .step_types import step_type_of


def enclosing_scopes(run: Run, task: Task) -> Iterator[tuple[Key, int]]:
    """The keys of the steps that take failures around a task, the innermost first, and the phase that it is in."""
    for depth in range(len(task.step.loops) - 1, -1, -1):
        step = run.step(task.step.loops[depth], task)
        if step is not None and step_type_of(step.type).handles_failures:
            yield Key(step.ref, task.key.iteration_path[:depth]), task.key.iteration_path[depth]


def has_failure_handler(run: Run, task: Task) -> bool:
    """Whether some step around the task takes its failure."""
    return bool(task.step.loops) and next(enclosing_scopes(run, task), None) is not None


def is_inside_scope(task: Task, scope: Key, iteration: int | None) -> bool:
    """Whether the task is in this turn of the step, or in any if none is given, however deep."""
    depth = len(scope.iteration_path)
    if task.step.loops[depth : depth + 1] != (scope.ref,) or task.key.iteration_path[:depth] != scope.iteration_path:
        return False
    return iteration is None or task.key.iteration_path[depth] == iteration


def is_failure_handled(run: Run, task: Task, iterations: Mapping[Key, int | None] = MappingProxyType({})) -> bool:
    """Whether a step around the task has gone on from its failure; `turns` are those in which some go on again."""
    for key, iteration in enclosing_scopes(run, task):
        scope = run.tasks.get(key)
        if scope is not None and _has_gone_on(scope, iteration, key in iterations, iterations.get(key)):
            return True
    return False


def _has_gone_on(scope: Task, iteration: int, is_again: bool, again: int | None) -> bool:
    if scope.succeeded and not is_again:
        return True
    kind = step_type_of(scope.step.type)
    return kind.has_phases and iteration != (again or kind.failed_iteration(scope) or scope.iteration)
