"""Pictures of definitions as the template `ops/diagram.html` shows them: every status with its colour and its sign."""

from collections.abc import Mapping
from typing import Any

from ..insight.diagram import Diagram, StepMarks, diagram
from .badges import ICONS, status_tone


def draw_definition(document: Mapping[str, Any], seen: StepMarks | None = None, **options: Any) -> Diagram:
    """The picture of a workflow document; `seen` and the options as of `insight.diagram`."""
    drawn = diagram(document, **({"seen": seen} if seen else {}), **options)
    for node in drawn.nodes:
        if node.status:
            node.tone = status_tone(node.status)
            node.icon = ICONS.get(node.status, node.tone)
    return drawn
