"""Elements of a diagram: boxes, lines and frames with their positions, in units of the drawing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .marks import StepMark, StepMarks

BOX_WIDTH, BOX_HEIGHT = 196, 46
GAP, ROW_GAP, MARGIN = 26, 28, 14
DOT = 7
FOOT = 18
"""Height between the longest branch and the line that joins the branches."""
INSERTION_ABOVE, INSERTION_BELOW = 13, 9
"""Distance of a button that inserts a step from the first step of a branch, and from the last."""
MAX_TEXT_LENGTH = 23
MAX_NODES = 2_000
READABLE_SCALE, MAX_DIGIT_GROUPS = 0.7, 12


@dataclass(slots=True)
class DiagramNode:
    """Box of one step: its position, its texts and its state in a run."""

    ref: str
    name: str
    type: str
    path: str
    href: str
    shape: str
    caption: str = ""
    """Text instead of the reference, in a box that stands for several branches of the step `ref`."""
    x: int = 0
    y: int = 0
    width: int = BOX_WIDTH
    height: int = BOX_HEIGHT
    mark: StepMark | None = None
    note: str = ""
    is_faint: bool = False
    is_chosen: bool = False
    # Set by the page that shows the status: color and icon.
    tone: str = ""
    icon: str = ""

    @property
    def title(self) -> str:
        """Return the reference, shortened to fit the box."""
        most = MAX_TEXT_LENGTH - (3 if self.status else 0) - (4 if self.mark and self.mark.count > 1 else 0)
        return shorten(self.full_title, most)

    @property
    def full_title(self) -> str:
        return self.caption or self.ref or "no reference"

    @property
    def status(self) -> str:
        return self.mark.status if self.mark else ""

    @property
    def status_text(self) -> str:
        """Return the status as text, or an empty text if the step was not reached."""
        if self.mark is None:
            return ""
        return self.mark.status_text or self.mark.status.replace("_", " ").capitalize()

    @property
    def subtitle(self) -> str:
        """Return the second line: the type, with the note, the status or the name."""
        parts = (
            (self.type, self.note)
            if self.note
            else (self.type, self.status_text)
            if self.status_text
            else (self.type, self.distinct_name)
        )
        return shorten(" · ".join(filter(None, parts)), MAX_TEXT_LENGTH + (2 if self.status else 5))

    @property
    def distinct_name(self) -> str:
        return self.name if self.name != self.ref else ""

    @property
    def label(self) -> str:
        """Return all texts of the box, for screen readers."""
        times = f"{self.mark.count} times" if self.mark and self.mark.count > 1 else ""
        return ", ".join(
            filter(
                None, (self.full_title, self.type, self.distinct_name, self.status_text, self.note, times)
            )
        )


@dataclass(frozen=True, slots=True)
class InsertionPoint:
    """A place for a new step. `path`: the path that the step would have; `after`: the step before it in its list."""

    path: str
    after: str = ""


@dataclass(slots=True)
class DiagramEdge:
    """A line from one box to the next. `x`, `y`: where a button at its insertion point is drawn."""

    d: str
    is_faint: bool
    has_arrow: bool = False
    insertion: InsertionPoint | None = None
    x: int = 0
    y: int = 0


@dataclass(slots=True)
class EdgeLabel:
    """A text beside a line."""

    x: int
    y: int
    text: str
    is_faint: bool


@dataclass(slots=True)
class DiagramFrame:
    """Frame around the body of a loop or of a TRY_CATCH step."""

    x: int
    y: int
    width: int
    height: int
    is_faint: bool


@dataclass(slots=True)
class Diagram:
    """A complete diagram."""

    width: int
    height: int
    nodes: list[DiagramNode]
    edges: list[DiagramEdge]
    labels: list[EdgeLabel]
    frames: list[DiagramFrame]
    dots: list[tuple[int, int, bool]]
    is_cut: bool
    can_insert: bool = False
    """True if the page that shows the diagram handles buttons that insert steps."""

    @property
    def min_width(self) -> int:
        """Return the minimum readable width, in hundreds of units. 0 means that the diagram is never scaled down."""
        hundreds = round(self.width * READABLE_SCALE / 100)
        return hundreds if hundreds <= MAX_DIGIT_GROUPS else 0


class Block(Protocol):
    """A part of the diagram that control enters at the top of its axis and leaves at the bottom.

    `left`, `right`: its extent on each side of the axis; `was_entered`, `was_exited`: True if the run did so.
    """

    left: int
    right: int
    height: int
    was_entered: bool
    was_exited: bool
    has_exit: bool

    def draw(self, canvas: Canvas, axis: int, top: int) -> None: ...


@dataclass
class Canvas:
    """A diagram under construction."""

    step_marks: StepMarks
    chosen: str
    link: Callable[[str, str], str]
    nodes: list[DiagramNode] = field(default_factory=list)
    edges: list[DiagramEdge] = field(default_factory=list)
    labels: list[EdgeLabel] = field(default_factory=list)
    frames: list[DiagramFrame] = field(default_factory=list)
    dots: list[tuple[int, int, bool]] = field(default_factory=list)
    width: int = 0
    height: int = 0
    boxes: int = 0
    is_cut: bool = False

    def has_room(self) -> bool:
        """Count one more box. Return True if it may be drawn."""
        self.boxes += 1
        self.is_cut = self.is_cut or self.boxes > MAX_NODES
        return self.boxes <= MAX_NODES

    def is_faint(self, was_taken: bool) -> bool:
        return self.step_marks.is_run and not was_taken

    def draw_line(self, points: list[tuple[int, int]], was_taken: bool, arrow: bool = False) -> None:
        """Draw a line with right angles through these points."""
        if len(set(points)) > 1:
            self.edges.append(DiagramEdge(path_through(points), self.is_faint(was_taken), arrow))

    def add_insertion(self, point: InsertionPoint | None, x: int, y: int) -> None:
        """Let the line drawn last accept a new step, with a button at this position."""
        edge = self.edges[-1]
        edge.insertion, edge.x, edge.y = point, x, y

    def draw(self, block: Any) -> None:
        """Draw a sequence between a start dot and an end dot."""
        axis, top = MARGIN + block.left, MARGIN + DOT
        self.dots.append((axis, top, False))
        first = top + DOT + ROW_GAP
        self.draw_line([(axis, top + DOT), (axis, first)], block.was_entered, arrow=block.height > 0)
        self.add_insertion(block.entry, axis, first - ROW_GAP // 2)
        block.draw(self, axis, first)
        bottom = first + block.height
        if block.has_exit:
            self.draw_line([(axis, bottom), (axis, bottom + ROW_GAP)], block.was_exited, arrow=True)
            self.add_insertion(block.exit, axis, bottom + ROW_GAP // 2)
        self.dots.append((axis, bottom + ROW_GAP + DOT, True))
        self.width, self.height = axis + block.right + MARGIN, bottom + ROW_GAP + 2 * DOT + MARGIN

    def build(self) -> Diagram:
        parts: list[Any] = [self.nodes, self.edges, self.labels, self.frames, self.dots]
        return Diagram(self.width, self.height, *parts, is_cut=self.is_cut)


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


CORNER = 6


def path_through(points: list[tuple[int, int]]) -> str:
    """Return the SVG path data (`d`) of a line through these points, with rounded corners."""
    points = [point for place, point in enumerate(points) if place == 0 or point != points[place - 1]]
    parts = [f"M{points[0][0]} {points[0][1]}"]
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        begin, end = _corner_start(here, before), _corner_start(here, after)
        parts.append(f"L{begin[0]} {begin[1]}Q{here[0]} {here[1]} {end[0]} {end[1]}")
    parts.append(f"L{points[-1][0]} {points[-1][1]}")
    return "".join(parts)


def _corner_start(corner: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return the point on the line to `other` where the rounding begins. Lines are horizontal or vertical."""
    (x, y), (other_x, other_y) = corner, other
    reach = min(CORNER, max(abs(other_x - x), abs(other_y - y)) // 2)
    return x + _sign(other_x - x) * reach, y + _sign(other_y - y) * reach


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
