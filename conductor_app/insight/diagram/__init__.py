"""A definition as a picture: boxes and lines with their places worked out, a run laid over it where there is one."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from .canvas import Canvas, Diagram, DiagramEdge, DiagramFrame, DiagramNode
from .layout import sequence
from .marks import NOTHING_SEEN, StepMark, StepMarks, marks_of_run

__all__ = ["Diagram", "DiagramEdge", "DiagramFrame", "DiagramNode", "StepMark", "StepMarks", "diagram", "marks_of_run"]

Link = Callable[[str, str], str]


def diagram(
    document: Mapping[str, Any], seen: StepMarks = NOTHING_SEEN, *, chosen: str = "", link: Link | None = None
) -> Diagram:
    """The picture of a workflow document, which need not be valid.

    `seen`: what became of its steps in a run; `chosen`: the reference of the step that is shown as selected; `link`:
    where the box of a step leads to, by its reference and its path in the document.
    """
    canvas = Canvas(seen, chosen, link or _chosen_by_address)
    canvas.draw(sequence(document.get("tasks"), "tasks", canvas))
    return canvas.finished()


def _chosen_by_address(ref: str, path: str) -> str:
    return "?" + urlencode({"task": ref})
