"""Diagrams of workflow definitions: boxes and lines with computed positions, optionally with the state of a run."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from .canvas import Canvas, Diagram, DiagramEdge, DiagramFrame, DiagramNode
from .folding import DiagramFolding
from .iterations import IterationChoice, iteration_filters, parse_choice
from .layout import layout_sequence
from .marks import NO_MARKS, StepMark, StepMarks, marks_of_run, marks_of_tree

__all__ = [
    "Diagram",
    "DiagramEdge",
    "DiagramFolding",
    "DiagramFrame",
    "DiagramNode",
    "IterationChoice",
    "StepMark",
    "StepMarks",
    "diagram",
    "iteration_filters",
    "marks_of_run",
    "marks_of_tree",
    "parse_choice",
]

Link = Callable[[str, str], str]


def diagram(
    document: Mapping[str, Any],
    step_marks: StepMarks = NO_MARKS,
    *,
    chosen: str = "",
    link: Link | None = None,
    iterations: IterationChoice | None = None,
    folding: DiagramFolding | None = None,
    shows_absent_bodies: bool = False,
) -> Diagram:
    """Return the diagram of a workflow document, which need not be valid.

    `step_marks`: states of the steps in a run; `chosen`: reference of the selected step; `link`: returns the address
    behind the box of a step, from its reference and its path in the document; `iterations`: the chosen iterations of
    loops, for diagrams in which they can be changed; `folding`: the collapsed steps, likewise; `shows_absent_bodies`:
    draw optional bodies that the document leaves out.
    """
    canvas = Canvas(step_marks, chosen, link or _chosen_by_address, iterations, folding, shows_absent_bodies)
    canvas.draw(layout_sequence(document.get("tasks"), "tasks", canvas))
    return canvas.build()


def _chosen_by_address(ref: str, path: str) -> str:
    return "?" + urlencode({"task": ref})
