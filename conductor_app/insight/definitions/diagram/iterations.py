"""Choice of the iterations that a diagram of a run shows, and the links that change it.

The address names the iteration of each chosen loop, outermost first: `pages:3,retries:2`. A loop inside another one has
a choice only together with it, because its iterations begin again in each iteration of the other.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ....core.step_structure import Document, Flow, structure_of_step
from ....core.step_tree import MAX_DEPTH, bodies_of, references_inside
from .marks import IterationFilter

MAX_CHOSEN = 8
MAX_DIGITS = 9
ONLY_PASS = "1"
"""Component of the iteration path for the steps of one item: each item passes through its body once."""


@dataclass(frozen=True, slots=True)
class IterationPicker:
    """Links to iterations of a loop. `current`: the iteration shown, None for the newest state of each step.

    Empty addresses stand for links that lead nowhere.
    """

    loop: str
    total: int
    current: int | None
    previous: str
    next: str
    all: str


@dataclass(frozen=True, slots=True)
class IterationChoice:
    """The chosen iteration of each loop. `address`: returns the address of the page for another choice."""

    chosen: Mapping[str, int]
    address: Callable[[str], str]
    around: list[tuple[str, int]] = field(default_factory=list)
    """The loops around the step that is being laid out, with the iteration shown of each."""

    def picker(self, ref: str, total: int) -> IterationPicker | None:
        """Return the links for a loop, or None if it has only one iteration."""
        current = self.chosen.get(ref)
        if total < 2 and current is None:
            return None
        before = total if current is None else current - 1
        after = current + 1 if current is not None and current < total else 0
        outer = {loop: self.chosen[loop] for loop, _shown in self.around if loop in self.chosen}
        return IterationPicker(
            ref,
            total,
            current,
            self._address_of(ref, before) if before else "",
            self._address_of(ref, after) if after else "",
            "" if current is None else self.address(format_choice(outer)),
        )

    def _address_of(self, ref: str, number: int) -> str:
        return self.address(format_choice({**dict(self.around), ref: number}))


def parse_choice(text: str) -> dict[str, int]:
    """Return the iteration of each loop that an address names. Invalid parts are ignored."""
    found = {}
    for part in text.split(",")[:MAX_CHOSEN]:
        ref, _colon, number = part.rpartition(":")
        if ref and number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS and int(number):
            found[ref] = int(number)
    return found


def format_choice(chosen: Mapping[str, int]) -> str:
    return ",".join(f"{ref}:{number}" for ref, number in chosen.items())


def iteration_filters(document: Document, chosen: Mapping[str, int]) -> list[IterationFilter]:
    """Return the tasks of the chosen iterations. A loop is ignored unless all loops around it have a choice."""
    return list(_filters_inside(document.get("tasks"), (), chosen, 0)) if chosen else []


def _filters_inside(steps: Any, path: tuple[str, ...], chosen: Mapping[str, int], depth: int) -> Iterator[Any]:
    for step in steps if isinstance(steps, list) and depth < MAX_DEPTH else ():
        if not isinstance(step, Mapping):
            continue
        structure, ref = structure_of_step(step), str(step.get("taskReferenceName") or "")
        if structure.flow is Flow.LOOP and ref not in chosen:
            continue
        own = path
        if structure.flow is Flow.LOOP:
            own = (*path, str(chosen[ref]))
            yield IterationFilter(references_inside(step), ".".join(own))
            own = (*own, ONLY_PASS) if structure.item_type else own
        for body in bodies_of(step):
            phase = (str(body.phase),) if structure.flow is Flow.PHASES else ()
            yield from _filters_inside(body.steps, (*own, *phase), chosen, depth + 1)
