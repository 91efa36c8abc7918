"""Every step of a document with its place, so that it can be said which of two comes first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..parts import GUARD, LOOP, finally_of, parts_of, shape_of

DEEPEST = 60
BEFORE, LATER, BESIDE, SELF = "before", "later", "beside", "itself"


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a way through the document: the how-manieth step, and the how-manieth part of it."""

    place: int
    part: int = -1
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Spot:
    """One step: its reference, its path in the document, and the way to it from the outside."""

    step: Mapping[str, Any]
    path: str
    way: tuple[Level, ...]
    follows: Mapping[str, Any] | None = None

    @property
    def ref(self) -> str:
        found = self.step.get("taskReferenceName")
        return found if isinstance(found, str) else ""

    @property
    def name(self) -> str:
        found = self.step.get("name")
        return found if isinstance(found, str) else ""


def spots(steps: Any, path: str = "tasks", way: tuple[Level, ...] = ()) -> Iterator[Spot]:
    """All steps in the order of the document, those inside others included."""
    before = None
    for place, step in enumerate(steps if isinstance(steps, list) else ()):
        if not isinstance(step, Mapping):
            continue
        here = f"{path}[{place}]"
        yield Spot(step, here, (*way, Level(place)), before)
        before = step
        if len(way) < DEEPEST:
            last = finally_of(step, here)
            for number, part in enumerate([*parts_of(step, here), *([last] if last else [])]):
                yield from spots(part.steps, part.path, (*way, Level(place, number, shape_of(step))))


def order(source: Spot, reader: Spot) -> str:
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
        return _within_one(theirs, ours)
    return BEFORE


def _within_one(theirs: Level, ours: Level) -> str:
    """Both are the same step or inside it."""
    if ours.part == -1:
        return BEFORE if theirs.shape == LOOP else LATER
    if theirs.part == -1 or theirs.shape == GUARD:
        return BEFORE if theirs.part < ours.part else BESIDE
    return BESIDE


def _shares_loop(way: tuple[Level, ...]) -> bool:
    """Whether a loop is around both: what comes later in one turn was there in the turn before."""
    return any(level.shape == LOOP for level in way)
