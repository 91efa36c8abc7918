"""Diagrams of definitions as the template `ops/diagram.html` renders them, with a color and an icon for each status.

Scripts can rely on these attributes of the SVG. A path is one of the document: `tasks[2].loopOver[0]`.

- `.diagram-node` is the box of a step: `data-ref`, `data-path`. A box that counts several branches has those of its fork.
- `.diagram-line` is a line. Where a step can be inserted, `data-insert` is the path that the new step would have, and
  `data-after` the reference of the step before it in its list, empty at the start of the list.
- `.diagram-insert` is a button on such a line, with the same two attributes. `can_insert` requests these buttons.
"""

from collections.abc import Mapping
from typing import Any

from ..insight.definitions.diagram import Diagram, StepMarks, diagram
from .badges import STATUS_ICONS, status_tone


def draw_definition(
    document: Mapping[str, Any], step_marks: StepMarks | None = None, *, can_insert: bool = False, **options: Any
) -> Diagram:
    """Return the diagram of a workflow document. `step_marks` and the options are those of `insight.diagram`.

    `can_insert`: draw a button on each line where a step can be inserted, for pages with a script that handles it.
    """
    picture = diagram(document, **({"step_marks": step_marks} if step_marks else {}), **options)
    picture.can_insert = can_insert
    for node in picture.nodes:
        if node.status:
            node.tone = status_tone(node.status)
            node.icon = STATUS_ICONS.get(node.status, node.tone)
    return picture
