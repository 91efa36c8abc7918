"""Every step of a document with its place, so that it can be said which of two comes first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..parts import GUARD, LOOP, finally_sequence, nested_sequences, shape_of

DEEPEST = 60
BEFORE, LATER, BESIDE, SELF = "before", "later", "beside", "itself"


@dataclass(frozen=True, slots=True)
class PathLevel:
    """One level of a way through the document: the how-manieth step, and the how-manieth part of it."""

    place: int
    part: int = -1
    shape: str = ""


@dataclass(frozen=True, slots=True)
class StepSpot:
    """One step: its reference, its path in the document, and the way to it from the outside."""

    step: Mapping[str, Any]
    path: str
    way: tuple[PathLevel, ...]
    follows: Mapping[str, Any] | None = None

    @property
    def ref(self) -> str:
        found = self.step.get("taskReferenceName")
        return found if isinstance(found, str) else ""

    @property
    def name(self) -> str:
        found = self.step.get("name")
        return found if isinstance(found, str) else ""


def all_steps(steps: Any, path: str = "tasks", way: tuple[PathLevel, ...] = ()) -> Iterator[StepSpot]:
    """All steps in the order of the document, those inside others included."""
    before = None
    for place, step in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(step, Mapping):
            continue
        here = f"{path}[{place}]"
        yield StepSpot(step, here, (*way, PathLevel(place)), before)
        before = step
        if len(way) < DEEPEST:
            last = finally_sequence(step, here)
            for number, part in enumerate([*nested_sequences(step, here), *([last] if last else [])]):
                yield from all_steps(part.steps, part.path, (*way, PathLevel(place, number, shape_of(step))))


def compare_order(source: StepSpot, reader: StepSpot) -> str:
    """Where one step stands as seen from another: BEFORE means that it may have ended by then."""
    if source.way == reader.way:
        return BEFORE if _shares_loop(source.way[:-1]) else SELF
    for depth, (theirs, ours) in enumerate(zip(source.way, reader.way, strict=False)):
        if theirs == ours:
            continue
        if _shares_loop(source.way[:depth]):
            return BEFORE
        if theirs.place != ours.place:
            return BEFORE if theirs.place < ours.place else LATER
        return _compare_nested(theirs, ours)
    return BEFORE


def _compare_nested(theirs: PathLevel, ours: PathLevel) -> str:
    """Both are the same step or inside it."""
    if ours.part == -1:
        return BEFORE if theirs.shape == LOOP else LATER
    if theirs.part == -1 or theirs.shape == GUARD:
        return BEFORE if theirs.part < ours.part else BESIDE
    return BESIDE


def _shares_loop(way: tuple[PathLevel, ...]) -> bool:
    """Whether a loop is around both: what comes later in one turn was there in the turn before."""
    return any(level.shape == LOOP for level in way)
