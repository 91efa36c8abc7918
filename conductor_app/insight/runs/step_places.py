"""The place of each step in its definition: the bodies around it, outermost first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.step_structure import Flow, structure_of_step
from ...core.step_tree import bodies_of


@dataclass(frozen=True, slots=True)
class EnclosingBody:
    """One body around a step.

    `ref`: the step with the body. `loops`: number of loops around that step. `number`: index of the body. `size`:
    number of steps in the body. `has_items`: the engine adds a task for each iteration.
    """

    ref: str
    loops: int
    number: int
    flow: Flow
    label: str = ""
    size: int = 0
    has_items: bool = False


def enclosing_bodies(
    tasks: Sequence[Mapping[str, Any]], above: tuple[EnclosingBody, ...] = (), loops: int = 0
) -> dict[str, tuple[EnclosingBody, ...]]:
    """Return the bodies around each step, outermost first, by reference."""
    found: dict[str, tuple[EnclosingBody, ...]] = {}
    for task in tasks:
        ref, structure = str(task.get("taskReferenceName")), structure_of_step(task)
        found[ref] = above
        deeper = loops + structure.iterates + bool(structure.item_type)
        for number, body in enumerate(bodies_of(task)):
            label, has_items = body.label or body.name, bool(structure.item_type)
            place = EnclosingBody(ref, loops, number, structure.flow, label, len(body.steps), has_items)
            found |= enclosing_bodies(body.steps, (*above, place), deeper)
    return found


def forks_by_join(tasks: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, int]]:
    """Return the dynamic fork before each join and the number of loops around it, by the reference of the join."""
    found: dict[str, tuple[str, int]] = {}
    _find_forks(tasks, 0, found)
    return found


def _find_forks(tasks: Sequence[Mapping[str, Any]], loops: int, found: dict[str, tuple[str, int]]) -> None:
    fork = ""
    for task in tasks:
        ref, structure = str(task.get("taskReferenceName")), structure_of_step(task)
        if fork:
            found[ref] = (fork, loops)
        fork = ref if structure.flow is Flow.DYNAMIC_FORK else ""
        for body in bodies_of(task):
            _find_forks(body.steps, loops + structure.iterates + bool(structure.item_type), found)
