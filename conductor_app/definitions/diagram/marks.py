"""Values that a diagram shows of a run: the state of each step, the chosen iterations of loops, and collapsed steps.

The address of a page names the iteration of each chosen loop, outermost first: `pages:3,retries:2`. A loop inside
another one has a choice only together with it, because its iterations begin again in each iteration of the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

GOOD_ENDS = frozenset(("COMPLETED", "COMPLETED_WITH_ERRORS", "SKIPPED"))
MAX_CHOSEN = 8
MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class StepMark:
    """State of one step: the status of its newest task, its number of tasks, and its last iteration if it is a loop.

    `total`: number of iterations of the loop, 0 if unknown; `status_text`: text to show instead of the status;
    `iteration_path`: that of the newest task. The remaining fields are those of its newest attempt. `queue_status`:
    PENDING or LEASED, if it is open and has a queue; `duration_ms`: since its start, or since it was scheduled;
    `value`: the value that selected a case.
    """

    status: str
    count: int = 1
    last_iteration: int = 0
    total: int = 0
    status_text: str = ""
    iteration_path: str = ""
    queue_status: str = ""
    duration_ms: int = 0
    attempts: int = 1
    worker: str = ""
    value: str = ""

    @property
    def has_passed(self) -> bool:
        return self.status in GOOD_ENDS


@dataclass(frozen=True, slots=True)
class StepMarks:
    """Marks by step reference.

    `forked`: number of dynamic branches by status, by the reference of the join after the fork; `is_run`: False if the
    diagram shows a definition without a run, so that steps without a mark are not drawn faint.
    """

    marks: Mapping[str, StepMark] = field(default_factory=dict)
    forked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_run: bool = True

    def get(self, ref: str) -> StepMark | None:
        return self.marks.get(ref)


NO_MARKS = StepMarks(is_run=False)


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


@dataclass(frozen=True, slots=True)
class DiagramFolding:
    """The collapsed nodes of the run's tree, by id. `link`: returns the address that opens or closes one.

    It receives the id, and True if the node is open.
    """

    closed: frozenset[str]
    link: Callable[[str, bool], str]


def tree_id(ref: str, iteration_path: str, branch: int = 0) -> str:
    """Return the id of a task in the tree of its run, or that of one of its branches, counted from 1."""
    id = "__".join((ref, *iteration_path.split("."))) if iteration_path else ref
    return f"{id}/{branch}" if branch else id
