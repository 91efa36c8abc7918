"""Places in a workflow document where a step stands or can be inserted, by paths such as `tasks[0].loopOver[1]`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import NotFound
from ...step_structure import Body, Document, Flow, as_steps, body_at, structure_of_step
from ...step_tree import MAX_DEPTH, walk

INDEX = re.compile(r"(.*)\[(\d{1,9})\]", re.DOTALL)
Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class StepSequence:
    """A list of steps in a document, which may be missing there. `owner`: reference of the step that contains it.

    `is_optional`: the document leaves the list out if it is empty.
    """

    path: str
    keys: Keys
    steps: list[Any]
    owner: str = ""
    label: str = ""
    is_optional: bool = False

    def unit(self, index: int) -> tuple[int, int]:
        """Return the range of the steps that are edited together: a fork with its join, otherwise one step."""
        if self._is_fork(index) and self._ends_forks(index + 1):
            return index, index + 2
        if self._ends_forks(index) and self._is_fork(index - 1):
            return index - 1, index + 1
        return index, index + 1

    def can_insert(self, index: int) -> bool:
        """Return True if a step may be inserted before the index. Nothing may separate a fork from its join."""
        return not (self._is_fork(index - 1) and self._ends_forks(index))

    def _is_fork(self, index: int) -> bool:
        return (step := self._step(index)) is not None and structure_of_step(step).forks

    def _ends_forks(self, index: int) -> bool:
        return (step := self._step(index)) is not None and structure_of_step(step).ends_forks

    def _step(self, index: int) -> Document | None:
        step = self.steps[index] if 0 <= index < len(self.steps) else None
        return step if isinstance(step, Mapping) else None


@dataclass(frozen=True, slots=True)
class StepPlace:
    """A place for a new step. `after`: the reference before it; `owner`, `label`: the step and the body around it."""

    path: str
    after: str
    owner: str
    label: str


def sequences_of(document: Document) -> Iterator[StepSequence]:
    """Yield all sequences of a document, empty ones included."""
    return _sequences(StepSequence("tasks", ("tasks",), as_steps(document.get("tasks"))), 0)


def _sequences(sequence: StepSequence, depth: int) -> Iterator[StepSequence]:
    yield sequence
    for index, step in enumerate(sequence.steps):
        if not isinstance(step, Mapping) or depth >= MAX_DEPTH:
            continue
        owner = reference_of(step)
        for body in _bodies_with_empty_ones(step):
            path, keys = f"{sequence.path}[{index}].{body.place}", (*sequence.keys, index, *body.path)
            inner = StepSequence(path, keys, body.steps, owner, body.label, body.is_optional)
            yield from _sequences(inner, depth + 1)


def _bodies_with_empty_ones(step: Document) -> list[Body]:
    structure = structure_of_step(step)
    found = [*structure.bodies(step), *structure.absent_bodies(step)]
    if not found and structure.flow is Flow.LOOP:
        return [body_at(step, "loopOver")]
    return found


def places_of(document: Document) -> Iterator[StepPlace]:
    """Yield the places where a step can be inserted, in the order of the document."""
    for sequence in sequences_of(document):
        for index in range(len(sequence.steps) + 1):
            if sequence.can_insert(index):
                after = reference_of(sequence.steps[index - 1]) if index else ""
                yield StepPlace(f"{sequence.path}[{index}]", after, sequence.owner, sequence.label)


def find_place(document: Document, path: str) -> tuple[StepSequence, int]:
    """Return the sequence of a path, and the index in it, which may be that behind the last step.

    Raises:
        NotFound: when the document has no such place.
    """
    parts = INDEX.fullmatch(path)
    sequence = next((each for each in sequences_of(document) if parts and each.path == parts[1]), None)
    if parts is None or sequence is None or int(parts[2]) > len(sequence.steps):
        raise NotFound(f"The definition has no place {path[:200]}.")
    return sequence, int(parts[2])


def find_step(document: Document, path: str) -> tuple[StepSequence, int]:
    """Return the sequence that contains the step of a path, and its index.

    Raises:
        NotFound: when the document has no such step.
    """
    sequence, index = find_place(document, path)
    if index >= len(sequence.steps) or not isinstance(sequence.steps[index], Mapping):
        raise NotFound(f"The definition has no step {path[:200]}.")
    return sequence, index


def reference_of(step: Any) -> str:
    """Return the reference of a step, or ""."""
    ref = step.get("taskReferenceName") if isinstance(step, Mapping) else None
    return ref if isinstance(ref, str) else ""


def references_of(document: Document) -> list[str]:
    """Return the references of all steps, repeated ones included."""
    return [spot.ref for spot in walk(document.get("tasks")) if spot.ref]


def replace_steps(document: Document, sequence: StepSequence, steps: list[Any]) -> dict[str, Any]:
    """Return the document with other steps in a sequence. An optional sequence without steps is left out."""
    if steps or not sequence.is_optional:
        return replace_at(document, sequence.keys, steps)
    return _remove_at(document, sequence.keys)


def _remove_at(value: Any, keys: Keys) -> Any:
    key, rest = keys[0], keys[1:]
    if rest:
        return replace_at(value, (key,), _remove_at(value[key], rest))
    return {name: item for name, item in value.items() if name != key}


def replace_at(value: Any, keys: Keys, item: Any) -> Any:
    """Return a copy of the value with the item at the keys. Missing members are created."""
    if not keys:
        return item
    key, rest = keys[0], keys[1:]
    if isinstance(value, list) and isinstance(key, int):
        return [*value[:key], replace_at(value[key], rest, item), *value[key + 1 :]]
    members = value if isinstance(value, Mapping) else {}
    return {**members, key: replace_at(members.get(key), rest, item)}
