"""Find the enclosing steps that handle the failure of a task, so that it does not end the run."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from .definition import Key
from .snapshot import Run, Task
from .step_types import step_type_of


def enclosing_scopes(run: Run, task: Task) -> Iterator[tuple[Key, int]]:
    """Yield the key of each enclosing step that handles failures, innermost first, and the task's iteration in it."""
    for depth in range(len(task.step.loops) - 1, -1, -1):
        step = run.step(task.step.loops[depth], task)
        if step is not None and step_type_of(step.type).handles_failures:
            yield Key(step.ref, task.key.iteration_path[:depth]), task.key.iteration_path[depth]


def has_failure_handler(run: Run, task: Task) -> bool:
    """Return True if an enclosing step handles the failure of the task."""
    return bool(task.step.loops) and next(enclosing_scopes(run, task), None) is not None


def is_inside_scope(task: Task, scope: Key, iteration: int | None) -> bool:
    """Return True if the task is in this iteration of the step (None: in any), at any depth."""
    depth = len(scope.iteration_path)
    if task.step.loops[depth : depth + 1] != (scope.ref,) or task.key.iteration_path[:depth] != scope.iteration_path:
        return False
    return iteration is None or task.key.iteration_path[depth] == iteration


def is_failure_handled(run: Run, task: Task, iterations: Mapping[Key, int | None] = MappingProxyType({})) -> bool:
    """Return True if an enclosing step continued after the failure of the task.

    `iterations`: steps that are entered again, with the iteration in which they continue.
    """
    for key, iteration in enclosing_scopes(run, task):
        scope = run.tasks.get(key)
        if scope is not None and _has_continued(scope, iteration, key in iterations, iterations.get(key)):
            return True
    return False


def _has_continued(scope: Task, iteration: int, is_again: bool, again: int | None) -> bool:
    if scope.succeeded and not is_again:
        return True
    kind = step_type_of(scope.step.type)
    return kind.has_phases and iteration != (again or kind.failed_iteration(scope) or scope.iteration)
