"""Diagram of a task group: one box per task, or per group of similar tasks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...definitions.diagram.canvas import shorten
from ...definitions.diagram.layered_graph import BOX_WIDTH, draw_layered
from .critical import LongestChain
from .graph import DependencyGraph, Edge, build_graph, drop_implied_edges, graph_levels
from .members import URGENCY, GroupMember, natural_sort_key
from .name_patterns import OTHERS, group_by_pattern

MAX_NODES = 300
HIGH, LOW = 46, 26
TALL_COLUMN = 14
"""Boxes in a column above which all boxes have the small height."""
MAX_NAME_LENGTH = 21
READABLE, MAX_DIGIT_GROUPS = 0.7, 12


@dataclass(slots=True)
class GroupBox:
    """One task, or several similar tasks. `kind`: name pattern of the similar tasks."""

    id: str
    name: str
    state: str
    counts: Mapping[str, int]
    is_critical: bool
    kind: str = ""
    x: int = 0
    y: int = 0
    # Set by the page that shows the box: color, icon, address and text.
    tone: str = ""
    icon: str = ""
    href: str = ""
    words: str = ""

    @property
    def title(self) -> str:
        return shorten(self.name, MAX_NAME_LENGTH - (3 if self.total > 1 else 0))

    @property
    def subtitle(self) -> str:
        return shorten(self.words, MAX_NAME_LENGTH + 5)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(slots=True)
class GroupPicture:
    """Boxes with their positions, and SVG paths of the ordinary and the marked lines."""

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
        """Return the minimum readable width, in hundreds of units. 0 means that the diagram is never scaled down."""
        hundreds = round(self.width * READABLE / 100)
        return hundreds if hundreds <= MAX_DIGIT_GROUPS and self.height < 2 * self.width else 0


def draw_group(members: Sequence[GroupMember], graph: DependencyGraph, chain: LongestChain) -> GroupPicture:
    """Draw the tasks of a group. More than MAX_NODES tasks are grouped by name pattern."""
    if len(members) <= MAX_NODES:
        boxes = [GroupBox(each.id, each.name, each.state, {each.state: 1}, each.id in chain.ids) for each in members]
        return _place_boxes(boxes, graph, chain.edges, is_grouped=False)
    return _draw_by_pattern(members, graph, chain)


def _draw_by_pattern(members: Sequence[GroupMember], graph: DependencyGraph, chain: LongestChain) -> GroupPicture:
    """Draw one box per name pattern. Patterns may depend on each other in a cycle; their average level orders them."""
    patterns, levels = group_by_pattern(members, MAX_NODES), graph_levels(graph)
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
    """Place the boxes and draw the lines. An edge that others imply is drawn only if it is marked."""
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
