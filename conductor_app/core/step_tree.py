"""Walk the steps of a definition's document, using only the `bodies` of each step type."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .step_structure import Body, Document, Flow, structure_of_step

MAX_DEPTH = 60
"""Maximum nesting depth of steps."""


class StepLevel(NamedTuple):
    """A step within its sequence: the references before it and after it."""

    before: tuple[str, ...]
    ref: str
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathLevel:
    """One level of the path to a step: its index in the sequence, and the index of the body with the next level."""

    index: int
    body: int = -1
    flow: Flow | None = None


@dataclass(frozen=True, slots=True)
class StepSpot:
    """A step in a document. `path`: for messages. `levels`: outermost first. `follows`: the step before."""

    step: Document
    path: str
    levels: tuple[PathLevel, ...]
    follows: Document | None = None

    @property
    def ref(self) -> str:
        found = self.step.get("taskReferenceName")
        return found if isinstance(found, str) else ""

    @property
    def name(self) -> str:
        found = self.step.get("name")
        return found if isinstance(found, str) else ""


def bodies_of(step: Document) -> Iterator[Body]:
    """Yield the bodies of a step."""
    return structure_of_step(step).bodies(step)


def walk(steps: Any, path: str = "tasks", levels: tuple[PathLevel, ...] = ()) -> Iterator[StepSpot]:
    """Yield all steps in the order of the document, nested ones included, down to MAX_DEPTH."""
    before = None
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(step, Mapping):
            continue
        here = f"{path}[{index}]"
        yield StepSpot(step, here, (*levels, PathLevel(index)), before)
        before = step
        if len(levels) < MAX_DEPTH:
            structure = structure_of_step(step)
            for number, body in enumerate(structure.bodies(step)):
                yield from walk(body.steps, f"{here}.{body.place}", (*levels, PathLevel(index, number, structure.flow)))


def references_inside(step: Document) -> tuple[str, ...]:
    """Return the references of all steps inside a step, in the order of the document."""
    return tuple(spot.ref for body in bodies_of(step) for spot in walk(body.steps))


def path_to_step(steps: Sequence[Document], ref: str) -> tuple[StepLevel, ...]:
    """Return the path to a step, outermost level first, its own level last; empty if there is no such step."""
    refs = tuple(str(step.get("taskReferenceName")) for step in steps)
    for index, step in enumerate(steps):
        level = StepLevel(refs[:index], refs[index], refs[index + 1 :])
        if refs[index] == ref:
            return (level,)
        for body in bodies_of(step):
            if inner := path_to_step(body.steps, ref):
                return (level, *inner)
    return ()


def body_with(step: Document, ref: str) -> Body | None:
    """Return the body of a step that contains a reference at any depth, or None."""
    return next((body for body in bodies_of(step) if path_to_step(body.steps, ref)), None)


def phase_of(step: Document, ref: str) -> int | None:
    """Return the phase in which a step executes a step inside it; None if the step has no phases."""
    body = body_with(step, ref)
    return body.phase if body else None


def map_bodies(step: Document, change: Callable[[list[Any]], list[Any]]) -> dict[str, Any]:
    """Return a copy of a step whose non-empty bodies are changed."""
    changed: Any = dict(step)
    for body in bodies_of(step):
        if body.steps:
            changed = _replace_at(changed, body.path, change(body.steps))
    return changed


def _replace_at(value: Any, path: tuple[str | int, ...], item: Any) -> Any:
    if not path:
        return item
    copied = value.copy()
    copied[path[0]] = _replace_at(value[path[0]], path[1:], item)
    return copied
