"""The picture of a group: a box a task; of very many tasks a box for those alike."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..diagram.canvas import shorten
from ..diagram.layered_graph import BOX_WIDTH, draw_layered
from .critical import LongestChain
from .graph import DependencyGraph, Edge, build_graph, drop_implied_edges, graph_levels
from .members import URGENCY, GroupMember, natural_sort_key
from .name_patterns import OTHERS, group_by_pattern

MOST_BOXES = 300
HIGH, LOW = 46, 26
TALL_COLUMN = 14
"""Boxes above one another from which on they are drawn lower."""
LONGEST_NAME = 21
READABLE, MOST_HUNDREDS = 0.7, 12


@dataclass(slots=True)
class GroupBox:
    """One task, or several alike. `kind`: how those are asked for."""

    id: str
    name: str
    state: str
    counts: Mapping[str, int]
    is_critical: bool
    kind: str = ""
    x: int = 0
    y: int = 0
    tone: str = ""  # how a page shows the state: a colour,
    icon: str = ""  # and a sign
    href: str = ""
    words: str = ""  # and what is said of it

    @property
    def title(self) -> str:
        return shorten(self.name, LONGEST_NAME - (3 if self.total > 1 else 0))

    @property
    def subtitle(self) -> str:
        return shorten(self.words, LONGEST_NAME + 5)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(slots=True)
class GroupPicture:
    """Boxes with their places, and the lines as two paths."""

    width: int
    height: int
    box_width: int
    box_height: int
    boxes: list[GroupBox]
    line: str
    marked_line: str
    is_grouped: bool

    @property
    def min_width(self) -> int:
        """The least width at which it can be read, in hundreds; 0 for one that is never made smaller."""
        hundreds = round(self.width * READABLE / 100)
        return hundreds if hundreds <= MOST_HUNDREDS and self.height < 2 * self.width else 0


def draw_group(members: Sequence[GroupMember], graph: DependencyGraph, chain: LongestChain) -> GroupPicture:
    """The tasks, or the kinds of them where they are too many."""
    if len(members) <= MOST_BOXES:
        boxes = [GroupBox(each.id, each.name, each.state, {each.state: 1}, each.id in chain.ids) for each in members]
        return _place_boxes(boxes, graph, chain.edges, is_grouped=False)
    return _draw_by_pattern(members, graph, chain)


def _draw_by_pattern(members: Sequence[GroupMember], graph: DependencyGraph, chain: LongestChain) -> GroupPicture:
    """A box a kind. Kinds may need one another in a circle: they stand in the order of their tasks."""
    patterns, levels = group_by_pattern(members, MOST_BOXES), graph_levels(graph)
    kind_of = {member.id: kind for kind, some in patterns.items() for member in some}
    depth = {kind: sum(levels[each.id] for each in some) / len(some) for kind, some in patterns.items()}
    between = {(kind_of[needed], kind_of[id]) for id in graph.order for needed in graph.before[id]}
    edges = sorted((a, b) for a, b in between if (depth[a], a) < (depth[b], b))
    boxes = [_pattern_box(kind, some, chain) for kind, some in patterns.items()]
    marked = {(kind_of[a], kind_of[b]) for a, b in chain.edges}
    return _place_boxes(boxes, build_graph(patterns, edges), marked, is_grouped=True)


def _pattern_box(kind: str, some: Sequence[GroupMember], chain: LongestChain) -> GroupBox:
    counts: dict[str, int] = {}
    for member in some:
        counts[member.state] = counts.get(member.state, 0) + 1
    state = min(counts, key=lambda each: URGENCY.index(each) if each in URGENCY else len(URGENCY))
    is_critical = not {member.id for member in some}.isdisjoint(chain.ids)
    return GroupBox(kind, kind, state, counts, is_critical, kind="" if kind == OTHERS else kind)


def _place_boxes(boxes: list[GroupBox], graph: DependencyGraph, marked: set[Edge], *, is_grouped: bool) -> GroupPicture:
    """Each box in its place; a line that others imply is drawn only where it is marked."""
    levels = graph_levels(graph)
    tallest = max(Counter(levels.values()).values(), default=0)
    height = LOW if tallest > TALL_COLUMN else HIGH
    boxes.sort(key=lambda box: (levels[box.id], natural_sort_key(box.name), box.id))
    edges = [*drop_implied_edges(graph), *sorted(edge for edge in marked if edge[0] in graph.before.get(edge[1], ()))]
    drawn = draw_layered({box.id: levels[box.id] for box in boxes}, dict.fromkeys(edges), height, frozenset(marked))
    for box in boxes:
        box.x, box.y = drawn.positions[box.id]
    positions = (drawn.width, drawn.height, BOX_WIDTH, height)
    return GroupPicture(*positions, boxes, drawn.line, drawn.marked_line, is_grouped=is_grouped)
