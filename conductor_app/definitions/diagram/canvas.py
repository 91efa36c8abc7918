"""Elements of a diagram: boxes, lines and frames with their positions, and texts that fit into a box.

Positions are in units of the drawing. The server does not know the browser's font, so the widths of texts are those of
DejaVu Sans, which is wider than most fonts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...utils.formatting import format_duration
from ..policies import type_label
from .marks import DiagramFolding, IterationChoice, IterationPicker, StepMark, StepMarks

TITLE_SIZE, TEXT_SIZE = 13, 12
"""Font sizes of names and of all other texts, in units of the drawing (`static/ops/diagram.css`)."""
REGULAR = 0.9
"""Width of the regular weight, relative to the bold one."""
ELLIPSIS = "…"
SEPARATORS = " -_./:"
WORDS = re.compile(r"[^ \-_./:]+[ \-_./:]*|[ \-_./:]+")
"""The words of a name, each with the separators behind it."""
WIDE_FROM = 0x2E80
"""The first character of the scripts with square characters."""
WIDTH_BY_CHARACTERS = (
    (".,:;'|!/ -·ijlI", 0.42),
    ('ftr()[]_"', 0.52),
    ("mwMW@%", 1.05),
    ("ABCDEFGHKLNOPQRSTUVXYZ&", 0.8),
)
WIDTHS = {character: width for characters, width in WIDTH_BY_CHARACTERS for character in characters}
DEFAULT_WIDTH = 0.69
BOX_WIDTH, BOX_HEIGHT = 248, 52
GAP, ROW_GAP, MARGIN = 26, 28, 14
DOT = 7
FOOT = 18
"""Height between the longest branch and the line that joins the branches."""
INSERTION_ABOVE, INSERTION_BELOW = 13, 9
"""Distance of a button that inserts a step from the first step of a branch, and from the last."""
PAD, ICON = 12, 16
TEXT_START = PAD + ICON + 9
"""Distance of the texts from the left side of their box."""
MAX_NODES = 2_000
MAX_LABEL_WIDTH = 150
CORNER = 6


@dataclass(slots=True)
class DiagramNode:
    """Box of one step, or of several branches or tasks: its position, its texts and its state."""

    ref: str
    name: str
    type: str
    path: str
    href: str
    shape: str
    caption: str = ""
    """Text instead of the reference, in a box that does not stand for a step."""
    short_caption: str = ""
    x: int = 0
    y: int = 0
    width: int = BOX_WIDTH
    height: int = BOX_HEIGHT
    mark: StepMark | None = None
    note: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of branches or tasks by status, in the order in which they are shown."""
    is_faint: bool = False
    is_chosen: bool = False
    selects: bool = False
    """True if the address selects other tasks on the same page."""
    fold_href: str = ""
    """Address that opens or closes the steps inside."""
    is_folded: bool = False
    # Set by the page that shows the diagram: colors, icons and labels of statuses.
    tone: str = ""
    icon: str = ""
    type_icon: str = ""
    status_label: str = ""
    count_labels: Sequence[str] = ()

    @property
    def full_title(self) -> str:
        return self.caption or self.ref or _("no reference")

    @property
    def title(self) -> str:
        """Return the reference, cut in the middle if it is too long for the box."""
        return cut_middle(self.short_caption or self.full_title, self.title_width, TITLE_SIZE, is_bold=True)

    @property
    def title_width(self) -> float:
        beside = text_width(self.count_text) + 8 if self.count_text else 0
        return self.width - TEXT_START - PAD - beside - (ICON + 2 if self.has_icon_right else 0)

    @property
    def type_label(self) -> str:
        """Return the plain name of the type."""
        return type_label(self.type)

    @property
    def subtitle(self) -> str:
        """Return the second line, as far as there is room: type, note, status, duration, attempts and worker."""
        width = self.width - TEXT_START - PAD
        if self.count_labels:
            return join_first(self.count_labels, width)
        mark = self.mark
        if mark is None:
            name = "" if self.note else self.distinct_name
            return join_fitting([(1, self.type_label), (0, self.note), (2, name)], width)
        is_obvious = mark.status == "COMPLETED" and not mark.status_text
        parts = [
            (4, self.type_label),
            (0, self.note),
            (1, "" if is_obvious or (self.note and not mark.status_text) else self.status_text),
            (2, self.duration_text),
            (3, self.attempts_text),
            (5, mark.worker),
        ]
        return join_fitting(parts, width)

    @property
    def count_text(self) -> str:
        """Return how many tasks the box stands for, if the second line does not say it."""
        return f"×{self.mark.count:,}" if self.mark and self.mark.count > 1 and not self.counts else ""

    @property
    def is_stacked(self) -> bool:
        """Return True if the box is drawn as a pile: it stands for several things, or for another workflow."""
        return self.shape in ("many", "sub_workflow") or self.is_folded

    @property
    def status(self) -> str:
        return self.mark.status if self.mark else ""

    @property
    def status_text(self) -> str:
        """Return the status as text, or an empty text if the step was not reached."""
        if self.mark is None:
            return ""
        return self.mark.status_text or self.status_label or self.mark.status.replace("_", " ").capitalize()

    @property
    def duration_text(self) -> str:
        return format_duration(self.mark.duration_ms) if self.mark and self.mark.duration_ms else ""

    @property
    def attempts_text(self) -> str:
        if self.mark is None or self.mark.attempts < 2:
            return ""
        return ngettext("%(count)s attempt", "%(count)s attempts", self.mark.attempts) % {"count": self.mark.attempts}

    @property
    def distinct_name(self) -> str:
        return self.name if self.name != self.ref else ""

    @property
    def label(self) -> str:
        """Return all texts of the box, for screen readers and its tooltip."""
        times, mark = "", self.mark
        if mark and mark.count > 1:
            times = ngettext("%(count)s time", "%(count)s times", mark.count) % {"count": mark.count}
        parts = (
            self.full_title,
            self.type_label,
            self.distinct_name,
            self.status_text,
            self.note,
            *self.count_labels,
            times,
            self.duration_text,
            self.attempts_text,
            mark.worker if mark else "",
        )
        return ", ".join(filter(None, parts))

    # Positions of the parts of the box.

    @property
    def has_icon_right(self) -> bool:
        """Return True if the icon of the status stands on the right, because that of the type is on the left."""
        return bool(self.icon and self.type_icon)

    @property
    def text_x(self) -> int:
        return self.x + TEXT_START

    @property
    def title_y(self) -> int:
        return self.y + 22

    @property
    def subtitle_y(self) -> int:
        return self.y + 40

    @property
    def icon_y(self) -> int:
        return self.y + (self.height - ICON) // 2

    @property
    def right_x(self) -> int:
        """Return the left side of the icon on the right."""
        return self.x + self.width - PAD - ICON + 2

    @property
    def fold_x(self) -> int:
        """Return the center of the button that opens or closes the box, on its lower edge."""
        return self.x + self.width - PAD - ICON // 2

    @property
    def fold_y(self) -> int:
        return self.y + self.height

    @property
    def count_x(self) -> int:
        return self.right_x - 6 if self.has_icon_right else self.x + self.width - PAD

    @property
    def edge(self) -> str:
        """Return the SVG path of the left side, which has the color of the state."""
        x, y, bottom = self.x, self.y, self.y + self.height
        return f"M{x + 7} {y}Q{x} {y} {x} {y + 7}V{bottom - 7}Q{x} {bottom} {x + 7} {bottom}"


@dataclass(frozen=True, slots=True)
class InsertionPoint:
    """A place for a new step. `path`: the path that the step would have; `after`: the step before it in its list.

    `label`: the place in words, for a page with buttons that insert steps.
    """

    path: str
    after: str = ""
    label: str = ""


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
    full_text: str = ""
    """The whole text, if it is cut."""
    is_decided: bool = False
    """True if a run took this way."""


@dataclass(slots=True)
class DiagramFrame:
    """Frame around the body of a loop or of a TRY_CATCH step. `picker`: links to the iterations of the loop."""

    x: int
    y: int
    width: int
    height: int
    is_faint: bool
    picker: IterationPicker | None = None
    axis: int = 0


@dataclass(slots=True)
class Diagram:
    width: int
    height: int
    nodes: list[DiagramNode]
    edges: list[DiagramEdge]
    labels: list[EdgeLabel]
    frames: list[DiagramFrame]
    dots: list[tuple[int, int, bool]]
    is_cut: bool = False
    can_insert: bool = False
    """True if the page that shows the diagram handles buttons that insert steps."""

    @property
    def is_tall(self) -> bool:
        return self.height > self.width


@dataclass
class Canvas:
    """A diagram under construction."""

    step_marks: StepMarks
    chosen: str
    link: Callable[[str, str], str]
    iterations: IterationChoice | None = None
    folding: DiagramFolding | None = None
    shows_absent_bodies: bool = False
    """True if optional bodies without steps are drawn, so that a step can be inserted into them."""
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

    def draw_line(
        self, points: list[tuple[int, int]], was_taken: bool, arrow: bool = False, *, is_absent: bool = False
    ) -> None:
        """Draw a line with right angles through these points. `is_absent`: it leads to a body without steps."""
        if len(set(points)) > 1:
            is_faint = is_absent or self.is_faint(was_taken)
            self.edges.append(DiagramEdge(path_through(points), is_faint, arrow))

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
        width = BOX_WIDTH - TEXT_START - PAD - (ICON + 2 if self.step_marks.is_run else 0)
        shorter = drop_shared_parts((node.full_title for node in self.nodes), width, keeps_start=True)
        for node in self.nodes:
            node.short_caption = shorter.get(node.full_title, "")
        ends = (each.x + round(text_width(each.text, is_bold=each.is_decided)) + 4 for each in self.labels)
        return Diagram(
            max([self.width, *ends]),
            self.height,
            self.nodes,
            self.edges,
            self.labels,
            self.frames,
            self.dots,
            is_cut=self.is_cut,
        )


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


def case_label(x: int, y: int, text: str, value: str, is_faint: bool) -> EdgeLabel:
    """Return the label of a case beside its line. `value`: the value that decided for it."""
    full = text if value in ("", text) else f"{text}: {value}"
    cut = cut_middle(full, MAX_LABEL_WIDTH)
    return EdgeLabel(x, y, cut, is_faint, full if cut != full else "", is_decided=bool(value))


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


def text_width(text: str, size: float = TEXT_SIZE, *, is_bold: bool = False) -> float:
    """Return the estimated width of a text. `size`: its font size."""
    ems = sum(WIDTHS.get(each, 1.05 if ord(each) >= WIDE_FROM else DEFAULT_WIDTH) for each in text)
    return ems * size * (1 if is_bold else REGULAR)


def cut_middle(text: str, width: float, size: float = TEXT_SIZE, *, is_bold: bool = False) -> str:
    """Return a text that fits into a width. The middle of a longer text is left out: names often differ at the end."""
    if text_width(text, size, is_bold=is_bold) <= width:
        return text
    for kept in range(min(len(text) - 1, int(width)), 2, -1):
        cut = text[: kept // 2].rstrip() + ELLIPSIS + text[len(text) - (kept - kept // 2) :].lstrip()
        if text_width(cut, size, is_bold=is_bold) <= width:
            return cut
    return text[:1] + ELLIPSIS


def join_fitting(parts: Sequence[tuple[int, str]], width: float) -> str:
    """Join texts with their ranks. Texts with the highest ranks are left out until the rest fits into the width."""
    kept = [part for part in parts if part[1]]
    while len(kept) > 1 and text_width(" · ".join(text for _rank, text in kept)) > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    return cut_middle(" · ".join(text for _rank, text in kept), width)


def join_first(texts: Sequence[str], width: float) -> str:
    """Join as many of the first texts as fit into a width, with an ellipsis for the rest."""
    for kept in range(len(texts), 0, -1):
        joined = ", ".join([*texts[:kept], *([ELLIPSIS] if kept < len(texts) else [])])
        if text_width(joined) <= width:
            return joined
    return cut_middle(texts[0], width) if texts else ""


def drop_shared_parts(names: Iterable[str], width: float, *, keeps_start: bool = False) -> dict[str, str]:
    """Return the names without words that they share with the others of the same first word.

    Only names that do not fit into the width are changed, and only as far as necessary. `keeps_start`: keep the first
    word. Names that would become the same are not in the result.
    """
    by_word: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if not _fits(name, width):
            by_word.setdefault(WORDS.findall(name)[0].rstrip(SEPARATORS), []).append(name)
    found: dict[str, str] = {}
    for alike in by_word.values():
        if len(alike) > 1:
            found |= _drop_words({name: WORDS.findall(name) for name in alike}, width, keeps_start)
    texts = Counter(found.values())
    return {name: text for name, text in found.items() if texts[text] == 1}


def _drop_words(words: Mapping[str, Sequence[str]], width: float, keeps_start: bool) -> dict[str, str]:
    counts = Counter(word for own in words.values() for word in {each.rstrip(SEPARATORS) for each in own})
    found = {}
    for name, own in words.items():
        shared = {place: counts[word.rstrip(SEPARATORS)] for place, word in enumerate(own)}
        if min(shared.values()) == len(words):
            continue
        ranked = sorted(shared, key=lambda place: (-shared[place], place))
        often = [place for place in ranked if shared[place] * 2 > len(words) and (place or not keeps_start)]
        left_out: set[int] = set()
        for place in often:
            if _fits(_without(own, left_out), width):
                break
            left_out.add(place)
        found[name] = _without(own, left_out)
    return found


def _without(words: Sequence[str], left_out: Collection[int]) -> str:
    """Join the words, with an ellipsis for each sequence of words that are left out."""
    text = ""
    for place, word in enumerate(words):
        if place not in left_out:
            text += word
        elif not text.endswith(ELLIPSIS):
            text = text.rstrip(SEPARATORS) + ELLIPSIS
    return text


def _fits(name: str, width: float) -> bool:
    return text_width(name, TITLE_SIZE, is_bold=True) <= width
