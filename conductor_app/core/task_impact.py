"""Classify every task of a run by comparing the snapshots before and after a command."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .commands.reopen import next_keys
from .definition import Key, Step
from .effects import CreateTask, Effect, PruneIteration
from .snapshot import Run, Task
from .states import CANCELED
from .step_types import step_type_of

AGAIN, REUSED, CANCELLED, NEW, CONTINUES, DROPPED = "again", "reused", "cancelled", "new", "goes on", "dropped"
RESUMED = "resumed"
IMPACTS = {
    AGAIN: "will run again",
    RESUMED: "will resume its sub-workflow",
    REUSED: "result reused",
    CANCELLED: "will be cancelled",
    NEW: "new",
    CONTINUES: "goes on",
    DROPPED: "result dropped",
}
"""Names of the classes on the pages, in the order in which they are counted."""
EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class TaskImpact:
    """Effect of a command on one task.

    `is_later`: the task is deleted and created again when control reaches its step. `joined_by`: the join that waits
    for it, if a dynamic fork created it.
    """

    key: Key
    step: Step
    name: str
    status: str
    attempt_id: str = ""
    child_id: str = ""
    has_begun: bool = False
    is_later: bool = False
    joined_by: str = ""

    @property
    def repeats_effects(self) -> bool:
        """Return True if work with side effects outside the workflow is repeated."""
        return self.name == AGAIN and self.has_begun and is_external(self.step)


def is_external(step: Step) -> bool:
    """Return True if the author declares side effects outside the workflow: `side_effects: external`."""
    documents = (step.document, step.document.get("taskDefinition") or {})
    declared = (document.get(name) for document in documents for name in ("sideEffects", "side_effects"))
    return any(isinstance(value, str) and value.lower() == EXTERNAL for value in declared)


def task_impacts(before: Run, effects: Iterable[Effect], after: Run) -> list[TaskImpact]:
    """Return the impact on every task before or after the command, in the order of creation."""
    effects = list(effects)
    deleted = before.tasks.keys() - after.tasks.keys()
    entered = {effect.task.key for effect in effects if isinstance(effect, CreateTask)}
    dropped = set(_pruned_tasks(before, effects)) | (deleted - _reachable_steps(before, after) if deleted else set())
    found = [
        _impact_on(task, _classify(task, after.tasks.get(key), after, key in dropped, key in entered), key in deleted)
        for key, task in before.tasks.items()
    ]
    fresh = (task for key, task in after.tasks.items() if key not in before.tasks)
    return found + [_impact_on(task, NEW) for task in sorted(fresh, key=lambda task: task.seq)]


def _impact_on(task: Task, name: str, is_deleted: bool = False) -> TaskImpact:
    attempt = task.attempt
    has_begun = name != NEW and (attempt.started_at is not None or attempt.number > 0)
    is_later = is_deleted and name == AGAIN
    status = task.status
    joined_by = task.joined_by if task.branch_head else ""
    return TaskImpact(task.key, task.step, name, status, attempt.id, attempt.child_id, has_begun, is_later, joined_by)


def _classify(old: Task, new: Task | None, after: Run, is_dropped: bool, is_entered: bool) -> str:
    if new is None:
        return DROPPED if is_dropped or not after.is_open else AGAIN
    if is_entered or (new.id, new.attempt.id) != (old.id, old.attempt.id):
        return AGAIN
    if not old.is_open and new.is_open and old.attempt.child_id and new.attempt.child_id == old.attempt.child_id:
        return RESUMED
    if old.is_open:
        return CANCELLED if new.status == CANCELED else CONTINUES
    is_as_it_was = (new.status, new.attempt.ended_at) == (old.status, old.attempt.ended_at)
    return REUSED if is_as_it_was else AGAIN


def _pruned_tasks(run: Run, effects: Iterable[Effect]) -> Iterator[Key]:
    """Yield the tasks of iterations that a loop no longer keeps."""
    for effect in effects:
        if isinstance(effect, PruneIteration):
            iteration_path = (*effect.loop.iteration_path, effect.iteration)
            for key, task in run.tasks.items():
                if effect.loop.ref in task.step.loops and key.iteration_path[: len(iteration_path)] == iteration_path:
                    yield key


def _reachable_steps(before: Run, after: Run) -> set[Key]:
    """Return the keys that control may still reach, as far as the run reached them before; made choices stay."""
    iterations = _highest_iterations(before)
    to_follow = [place for task in after.tasks.values() for place in _next_from(task, iterations)]
    found: set[Key] = set()
    while to_follow:
        key, source = to_follow.pop()
        if key in found or key in after.tasks:
            continue
        found.add(key)
        old = before.tasks.get(key)
        step = old.step if old else after.step(key.ref, source)
        if step is not None:
            to_follow += [(then, old or source) for then in _all_successors(step, key, old, iterations)]
    return found


def _next_from(task: Task, iterations: Mapping[str, int]) -> Iterator[tuple[Key, Task]]:
    """Yield the keys after a task: all possible ones if it is open, otherwise those that it leads to."""
    if task.is_open:
        yield from ((key, task) for key in _all_successors(task.step, task.key, task, iterations))
    else:
        yield from ((key, task) for key in step_type_of(task.step.type).successors(task))


def _all_successors(step: Step, key: Key, task: Task | None, iterations: Mapping[str, int]) -> Iterator[Key]:
    """Yield all keys that control may reach from a step, in as many iterations of a loop as there have been."""
    yield from next_keys(step, key, task)
    if step.inside:
        for iteration in range(1, iterations.get(step.ref, 0) + 1):
            yield from (Key(head, (*key.iteration_path, iteration)) for head in step.heads)


def _highest_iterations(run: Run) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, task in run.tasks.items():
        for ref, iteration in zip(task.step.loops, key.iteration_path, strict=False):
            found[ref] = max(found.get(ref, 0), iteration)
    return found
