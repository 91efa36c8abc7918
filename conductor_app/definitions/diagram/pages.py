"""Diagrams as `ops/definitions/diagram.html` renders them, with colors, icons and labels of statuses and step types.

Scripts can rely on these attributes of the SVG. A path is one of the document: `tasks[2].loopOver[0]`.

- `.diagram-node` is the box of a step: `data-ref`, `data-path`. A box that counts branches has those of its fork.
- `.diagram-line` is a line. Where a step can be inserted, `data-insert` is the path that the new step would have, and
  `data-after` the reference of the step before it in its list, empty at the start of the list.
- `.diagram-insert` is a button on such a line, with the same two attributes. `can_insert` requests these buttons.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.utils.translation import gettext_lazy

from ...core.definition import Flow, structure_of
from ...core.document.differences import ADDED, CHANGED, MOVED, REMOVED, SemanticChange
from ...web.badges import ACTIVE, FAILED, PAUSED, STATUS_ICONS, SUCCEEDED, format_count, format_status, status_tone
from .canvas import Diagram, DiagramNode
from .layout import diagram
from .marks import NO_MARKS, StepMarks

ICON_BY_FLOW = {
    Flow.LEAF: "step-task",
    Flow.CHOICE: "step-switch",
    Flow.FORK: "step-fork",
    Flow.DYNAMIC_FORK: "step-fork",
    Flow.JOIN: "step-join",
    Flow.LOOP: "step-loop",
    Flow.PHASES: "step-guard",
    Flow.END: "step-end",
}
MANY_ICON = "step-many"
CHANGES = {
    REMOVED: (FAILED, gettext_lazy("removed")),
    ADDED: (SUCCEEDED, gettext_lazy("added")),
    CHANGED: (ACTIVE, gettext_lazy("changed")),
    MOVED: (PAUSED, gettext_lazy("moved")),
}
"""Color and label of a step that differs between two versions. The first one that applies is displayed."""


def step_icon(type: str) -> str:
    """Return the icon of a step type. A type that names none has the icon of the way control flows through it."""
    structure = structure_of(type)
    return f"step-{structure.icon}" if structure.icon else ICON_BY_FLOW[structure.flow]


def draw_definition(
    document: Mapping[str, Any], step_marks: StepMarks = NO_MARKS, *, can_insert: bool = False, **options: Any
) -> Diagram:
    """Return the diagram of a workflow document. `step_marks` and the options are those of `layout.diagram`.

    `can_insert`: draw a button on each line where a step can be inserted, for pages with a script that handles it.
    """
    picture = diagram(document, step_marks, shows_absent_bodies=can_insert, **options)
    picture.can_insert = can_insert
    for node in picture.nodes:
        node.type_icon = MANY_ICON if node.shape == "many" else step_icon(node.type)
        style_node(node)
    return picture


def draw_version(
    document: Mapping[str, Any], changes: Iterable[SemanticChange], link: Callable[[str, str], str]
) -> Diagram:
    """Return the diagram of one of two compared versions, in which the steps that differ are marked."""
    kinds: dict[str, set[str]] = {}
    for change in changes:
        kinds.setdefault(change.ref, set()).add(change.kind)
    picture = draw_definition(document, link=link)
    for node in picture.nodes:
        kind = next((kind for kind in CHANGES if kind in kinds.get(node.ref, ())), "")
        if node.ref and kind:
            node.tone, label = CHANGES[kind]
            node.note = str(label)
    return picture


def style_node(node: DiagramNode) -> None:
    """Set color, icon and labels of the status of a box."""
    if node.mark is None:
        return
    status = node.mark.queue_status or node.status
    node.tone, node.status_label = status_tone(status), format_status(status)
    node.icon = STATUS_ICONS.get(status, node.tone)
    node.count_labels = [f"{format_count(count)} {format_status(each).lower()}" for each, count in node.counts.items()]
