"""Diagram of a task group: one box per task, or per group of similar tasks."""

from collections import Counter
from collections.abc import Sequence

from ...definitions.diagram.canvas import BOX_HEIGHT, LOW_BOX_HEIGHT, Diagram, DiagramEdge, DiagramNode
from ...definitions.diagram.layered_graph import draw_layered
from ...definitions.diagram.marks import StepMark
from ...definitions.diagram.text_fit import drop_shared_parts
from .critical import LongestChain
from .graph import DependencyGraph, Edge, build_graph, drop_implied_edges, graph_levels
from .members import URGENCY, GroupMember, natural_sort_key
from .name_patterns import OTHERS, group_by_pattern

MAX_NODES = 300
TALL_COLUMN = 14
"""Boxes in a column above which all boxes have the small height."""


def draw_group(members: Sequence[GroupMember], graph: DependencyGraph, chain: LongestChain, now: int) -> Diagram:
    """Draw the tasks of a group. More than MAX_NODES tasks are grouped by name pattern, which is then the reference."""
    if len(members) <= MAX_NODES:
        boxes = [_task_box(each, each.id in chain.ids, now) for each in members]
        return _place_boxes(boxes, graph, chain.edges, is_grouped=False)
    return _draw_by_pattern(members, graph, chain)


def _task_box(member: GroupMember, is_critical: bool, now: int) -> DiagramNode:
    last = member.last
    ran = (last.ran(now) or last.waited(now)) if last else 0
    mark = StepMark(member.state, duration_ms=ran, attempts=len(member.attempts), worker=last.worker if last else "")
    return DiagramNode(
        member.id, member.name, "", "", "", "leaf", caption=member.name, mark=mark, is_critical=is_critical
    )


def _draw_by_pattern(members: Sequence[GroupMember], graph: DependencyGraph, chain: LongestChain) -> Diagram:
    """Draw one box per name pattern. Patterns may depend on each other in a cycle; their average level orders them."""
    patterns, levels = group_by_pattern(members, MAX_NODES), graph_levels(graph)
    kind_of = {member.id: kind for kind, some in patterns.items() for member in some}
    depth = {kind: sum(levels[each.id] for each in some) / len(some) for kind, some in patterns.items()}
    between = {(kind_of[needed], kind_of[id]) for id in graph.order for needed in graph.before[id]}
    edges = sorted((a, b) for a, b in between if (depth[a], a) < (depth[b], b))
    boxes = [_pattern_box(kind, some, chain) for kind, some in patterns.items()]
    marked = {(kind_of[a], kind_of[b]) for a, b in chain.edges}
    return _place_boxes(boxes, build_graph(patterns, edges), marked, is_grouped=True)


def _pattern_box(kind: str, some: Sequence[GroupMember], chain: LongestChain) -> DiagramNode:
    counts = Counter(member.state for member in some)
    ranked = sorted(counts, key=lambda state: URGENCY.index(state) if state in URGENCY else len(URGENCY))
    return DiagramNode(
        kind,
        kind,
        "",
        "",
        "",
        "many",
        caption=kind,
        mark=StepMark(ranked[0]),
        counts={state: counts[state] for state in ranked},
        is_critical=not {member.id for member in some}.isdisjoint(chain.ids),
        selects=kind != OTHERS,
    )


def _place_boxes(boxes: list[DiagramNode], graph: DependencyGraph, marked: set[Edge], *, is_grouped: bool) -> Diagram:
    """Place the boxes and draw the lines. An edge that others imply is drawn only if it is marked."""
    levels = graph_levels(graph)
    tallest = max(Counter(levels.values()).values(), default=0)
    height = LOW_BOX_HEIGHT if tallest > TALL_COLUMN else BOX_HEIGHT
    boxes.sort(key=lambda box: (levels[box.ref], natural_sort_key(box.caption), box.ref))
    edges = [*drop_implied_edges(graph), *sorted(edge for edge in marked if edge[0] in graph.before.get(edge[1], ()))]
    drawn = draw_layered({box.ref: levels[box.ref] for box in boxes}, dict.fromkeys(edges), height, frozenset(marked))
    for box in boxes:
        (box.x, box.y), box.height = drawn.positions[box.ref], height
    shorter = drop_shared_parts((box.caption for box in boxes), min((box.title_width for box in boxes), default=0))
    for box in boxes:
        box.short_caption = shorter.get(box.caption, "")
    lines = ((drawn.line, False), (drawn.marked_line, True))
    edges_drawn = [DiagramEdge(path, is_faint=False, is_critical=is_critical) for path, is_critical in lines if path]
    return Diagram(drawn.width, drawn.height, boxes, edges_drawn, [], [], [], is_grouped=is_grouped)
