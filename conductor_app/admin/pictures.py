"""Diagrams of definitions as the template `ops/diagram.html` renders them, with a color and an icon for each status."""

from collections.abc import Mapping
from typing import Any

from ..insight.definitions.diagram import Diagram, StepMarks, diagram
from .badges import STATUS_ICONS, status_tone


def draw_definition(document: Mapping[str, Any], step_marks: StepMarks | None = None, **options: Any) -> Diagram:
    """Return the diagram of a workflow document. `step_marks` and the options are those of `insight.diagram`."""
    picture = diagram(document, **({"step_marks": step_marks} if step_marks else {}), **options)
    for node in picture.nodes:
        if node.status:
            node.tone = status_tone(node.status)
            node.icon = STATUS_ICONS.get(node.status, node.tone)
    return picture
