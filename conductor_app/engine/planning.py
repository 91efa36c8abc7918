"""The plan of an operation: the same command and decision, not saved; what becomes of each task of each run by it."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ..core.errors import NotFound
from ..core.task_impact import AGAIN, FATES, TaskImpact, task_impacts
from ..store import runs as store
from .operations import Operation, operation_command
from .preview import Preview, RunPreview, preview

MOST_REPLACED = 50
"""Earlier children that are read to tell what their successors will do again."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What becomes of one run. `is_replaced`: another run does its work again, and it is left as it is."""

    run_id: str
    definition: str
    version: int
    status: str
    then: str
    fates: tuple[TaskImpact, ...]
    is_new: bool = False
    is_replaced: bool = False


@dataclass(frozen=True)
class OperationPlan:
    """What an operation would come to. `revision`: of `target`, the run that hears it; the confirm carries it."""

    run_id: str
    target: str
    revision: int
    operation: Operation
    runs: tuple[PlannedRun, ...]
    is_cut: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def external(self) -> list[tuple[PlannedRun, TaskImpact]]:
        """The tasks whose work the outside has seen and would see a second time."""
        return [(run, fate) for run in self.runs for fate in run.fates if fate.repeats_effects]


def plan_operation(run_id: str, operation: Operation) -> OperationPlan:
    """What would happen. Raises what carrying it out would: NotFound, Conflict, Invalid."""
    target, command = operation_command(run_id, operation)
    seen = preview(target, command)
    affected = [(foreseen, _plan_run(foreseen)) for foreseen in _in_order(seen)]
    replaced, is_cut = _superseded_children(child for pair in affected for child in _replaced_children_of(*pair))
    runs = [run for _, run in affected]
    counted = Counter(fate.name for run in runs for fate in run.fates)
    counts = {name: counted[name] for name in FATES if counted[name]}
    return OperationPlan(run_id, target, seen.revision, operation, (*runs, *replaced), seen.is_cut or is_cut, counts)


def _in_order(seen: Preview) -> Iterator[RunPreview]:
    """The run that hears it first, then who would be told; not those that would be asked and stay as they are."""
    for foreseen in seen.runs.values():
        if foreseen.effects or foreseen.before.id == seen.run_id:
            yield foreseen


def _plan_run(foreseen: RunPreview) -> PlannedRun:
    before, after = foreseen.before, foreseen.after
    told = tuple(task_impacts(before, foreseen.effects, after))
    is_new = not before.has_begun and before.revision == 0
    name, version = after.definition.name, after.definition.version
    return PlannedRun(before.id, name, version, before.status, after.status, told, is_new)


def _replaced_children_of(foreseen: RunPreview, planned: PlannedRun) -> Iterator[str]:
    """The children that give way to others."""
    for fate in planned.fates:
        task = foreseen.after.tasks.get(fate.key)
        if fate.name == AGAIN and fate.child_id and (task is None or task.attempt.child_id != fate.child_id):
            yield fate.child_id


def _superseded_children(children: Iterable[str]) -> tuple[list[PlannedRun], bool]:
    """The earlier children of tasks that are done again: their successors do all that they have done."""
    left, found = deque(children), []
    while left and len(found) < MOST_REPLACED:
        try:
            child = store.load_run(left.popleft())
        except NotFound:
            continue
        told = tuple(
            replace(fate, name=AGAIN, is_later=True) for fate in task_impacts(child, (), child) if fate.has_begun
        )
        left.extend(fate.child_id for fate in told if fate.child_id)
        name, version = child.definition.name, child.definition.version
        found.append(PlannedRun(child.id, name, version, child.status, child.status, told, is_replaced=True))
    return found, bool(left)
