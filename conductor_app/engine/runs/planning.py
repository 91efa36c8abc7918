"""Plan of an operation: its command is decided without saving, and each task of each affected run is classified."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ...core.errors import NotFound
from ...core.task_impact import AGAIN, IMPACTS, TaskImpact, task_impacts
from ...store import runs as store
from .operations import Operation, operation_command
from .preview import Preview, RunPreview, preview

MAX_REPLACED = 50
"""The maximum number of replaced child runs that a plan reads."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The part of a plan for one run. `is_replaced`: a new run repeats its work, and it stays unchanged."""

    run_id: str
    definition: str
    version: int
    status: str
    then: str
    impacts: tuple[TaskImpact, ...]
    is_new: bool = False
    is_replaced: bool = False


@dataclass(frozen=True)
class OperationPlan:
    """Result that an operation would have.

    `target`: the run that the operation changes. `revision`: the revision of `target`; the confirmation sends it back.
    `is_cut`: the plan is incomplete, because too many runs are affected.
    """

    run_id: str
    target: str
    revision: int
    operation: Operation
    runs: tuple[PlannedRun, ...]
    is_cut: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def external(self) -> list[tuple[PlannedRun, TaskImpact]]:
        """Tasks whose external effects the operation would repeat, with their runs."""
        return [(run, impact) for run in self.runs for impact in run.impacts if impact.repeats_effects]


def plan_operation(run_id: str, operation: Operation) -> OperationPlan:
    """Return the plan of an operation.

    Raises:
        NotFound, Conflict, Invalid: as `apply_operation`.
    """
    target, command = operation_command(run_id, operation)
    seen = preview(target, command)
    affected = [(foreseen, _plan_run(foreseen)) for foreseen in _in_order(seen)]
    replaced, is_cut = _superseded_children(child for pair in affected for child in _replaced_children_of(*pair))
    runs = [run for _, run in affected]
    counted = Counter(impact.name for run in runs for impact in run.impacts)
    counts = {name: counted[name] for name in IMPACTS if counted[name]}
    return OperationPlan(run_id, target, seen.revision, operation, (*runs, *replaced), seen.is_cut or is_cut, counts)


def _in_order(seen: Preview) -> Iterator[RunPreview]:
    """Yield the target first, then the other runs that the operation would change."""
    for foreseen in seen.runs.values():
        if foreseen.effects or foreseen.before.id == seen.run_id:
            yield foreseen


def _plan_run(foreseen: RunPreview) -> PlannedRun:
    before, after = foreseen.before, foreseen.after
    impacts = tuple(task_impacts(before, foreseen.effects, after))
    is_new = not before.has_begun and before.revision == 0
    name, version = after.definition.name, after.definition.version
    return PlannedRun(before.id, name, version, before.status, after.status, impacts, is_new)


def _replaced_children_of(foreseen: RunPreview, planned: PlannedRun) -> Iterator[str]:
    """Yield the child runs that new child runs replace."""
    for impact in planned.impacts:
        task = foreseen.after.tasks.get(impact.key)
        if impact.name == AGAIN and impact.child_id and (task is None or task.attempt.child_id != impact.child_id):
            yield impact.child_id


def _superseded_children(children: Iterable[str]) -> tuple[list[PlannedRun], bool]:
    """Return the plans of replaced child runs and their descendants, and True if there are more."""
    left = deque(children)
    found: list[PlannedRun] = []
    while left and len(found) < MAX_REPLACED:
        try:
            child = store.load_run(left.popleft())
        except NotFound:
            continue
        impacts = tuple(
            replace(impact, name=AGAIN, is_later=True) for impact in task_impacts(child, (), child) if impact.has_begun
        )
        left.extend(impact.child_id for impact in impacts if impact.child_id)
        name, version = child.definition.name, child.definition.version
        found.append(PlannedRun(child.id, name, version, child.status, child.status, impacts, is_replaced=True))
    return found, bool(left)
