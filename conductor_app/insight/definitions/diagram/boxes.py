"""Boxes of a diagram: a single step, and a dynamic fork with the branches it creates at runtime."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ....core.step_structure import Flow, structure_of_step, type_of
from ....core.step_types.human import Human
from ....core.step_types.sub_workflow import SubWorkflow
from ....core.step_types.wait import Wait
from ....core.step_types.wait_for_webhook import WaitForWebhook
from ....core.step_types.yield_ import Yield
from .canvas import BOX_HEIGHT, BOX_WIDTH, ROW_GAP, Canvas, DiagramNode
from .marks import StepMark

WORST_FIRST = ("FAILED", "TIMED_OUT", "CANCELED", "ACTIVE", "COMPLETED_WITH_ERRORS", "SKIPPED", "COMPLETED")
"""Order of statuses in a box that stands for many tasks. The box has the color of the first one that occurs."""


class StepBox:
    """Box of a single step."""

    left = right = BOX_WIDTH // 2
    height = BOX_HEIGHT

    def __init__(self, step: Mapping[str, Any], path: str, canvas: Canvas) -> None:
        ref, kind = str(step.get("taskReferenceName") or ""), type_of(step)
        mark = canvas.step_marks.get(ref) if ref else None
        self.node = DiagramNode(
            ref, str(step.get("name") or ref), kind, path, canvas.link(ref, path), _node_shape(step)
        )
        self.node.mark, self.node.is_faint = mark, canvas.is_faint(mark is not None)
        self.node.is_chosen = bool(ref) and ref == canvas.chosen
        self.node.note = _node_note(step, mark)
        self.was_entered, self.was_exited = mark is not None, mark is not None and mark.has_passed
        self.has_exit = structure_of_step(step).flow is not Flow.END

    def draw(self, canvas: Canvas, axis: int, top: int) -> None:
        self.node.x, self.node.y = axis - self.left, top
        canvas.nodes.append(self.node)


def _node_shape(step: Mapping[str, Any]) -> str:
    """Return the shape name that determines the outline of the box."""
    return SHAPE_BY_TYPE.get(type_of(step)) or SHAPE_BY_FLOW[structure_of_step(step).flow]


SHAPE_BY_FLOW = {
    Flow.LEAF: "leaf",
    Flow.CHOICE: "split",
    Flow.FORK: "split",
    Flow.DYNAMIC_FORK: "grows",
    Flow.JOIN: "join",
    Flow.LOOP: "loop",
    Flow.PHASES: "guard",
    Flow.END: "terminate",
}
SHAPE_BY_TYPE = {
    SubWorkflow.type: "sub_workflow",
    Human.type: "human",
    Wait.type: "wait",
    WaitForWebhook.type: "wait",
    Yield.type: "wait",
}


def _node_note(step: Mapping[str, Any], mark: StepMark | None) -> str:
    """Return the note of a step: its iterations, or the workflow that it starts."""
    structure = structure_of_step(step)
    if structure.flow is Flow.LOOP:
        return _loop_note(mark, mark.total if mark and mark.total else structure.max_iterations(step))
    if structure.type == SubWorkflow.type and mark is None:
        param = step.get("subWorkflowParam")
        name, version = (param.get("name"), param.get("version")) if isinstance(param, Mapping) else ("", "")
        return " ".join(filter(None, (str(name or ""), f"v{version}" if version else "")))
    return ""


def _loop_note(mark: StepMark | None, total: int) -> str:
    if mark and mark.last_iteration:
        if total < mark.last_iteration:
            return _("iteration %(number)s") % {"number": mark.last_iteration}
        return _("%(number)s/%(total)s iterations") % {"number": mark.last_iteration, "total": total}
    return ngettext("max %(total)s iteration", "max %(total)s iterations", total) % {"total": total} if total else ""


class DynamicForkBox:
    """A dynamic fork, with one box for all of its branches, counted by status."""

    left = right = BOX_WIDTH // 2 + 4
    height = 2 * BOX_HEIGHT + ROW_GAP + 4

    def __init__(self, box: StepBox, forked: Mapping[str, int], canvas: Canvas) -> None:
        self.box, self.was_entered = box, box.was_entered
        self.branch_steps = _branches_box(forked, box.node)
        self.branch_steps.is_faint = canvas.is_faint(bool(forked))
        self.was_exited, self.has_exit = box.was_exited, True

    def draw(self, canvas: Canvas, axis: int, top: int) -> None:
        self.box.draw(canvas, axis, top)
        below = top + BOX_HEIGHT + ROW_GAP
        canvas.draw_line([(axis, top + BOX_HEIGHT), (axis, below)], not self.branch_steps.is_faint, arrow=True)
        self.branch_steps.x, self.branch_steps.y = axis - BOX_WIDTH // 2, below
        canvas.nodes.append(self.branch_steps)


def remaining_branches_box(count: int, path: str, canvas: Canvas) -> StepBox:
    """Return one box that stands for the branches that are not drawn."""
    box = StepBox({"type": _("not shown")}, path, canvas)
    more = ngettext("%(count)s more branch", "%(count)s more branches", count) % {"count": f"{count:,}"}
    box.node.shape, box.node.caption = "many", more
    return box


def folded_branch_box(number: int, count: int, path: str, href: str, canvas: Canvas) -> StepBox:
    """Return one box that stands for the steps of a collapsed branch. Its address opens the branch."""
    box = StepBox({"type": _("collapsed")}, path, canvas)
    box.node.shape, box.node.href = "many", href
    box.node.caption = _("Branch %(number)s") % {"number": number}
    box.node.note = steps_text(count)
    return box


def steps_text(count: int) -> str:
    """Return the number of steps inside a collapsed box."""
    return ngettext("%(count)s step", "%(count)s steps", count) % {"count": f"{count:,}"}


def _branches_box(forked: Mapping[str, int], fork: DiagramNode) -> DiagramNode:
    """Return one box for all dynamic branches, with their number and statuses. It belongs to the step of the fork."""
    count = sum(forked.values())
    node = DiagramNode(fork.ref, fork.ref, "" if forked else _("created at runtime"), fork.path, fork.href, "many")
    title = ngettext("%(count)s branch", "%(count)s branches", count) % {"count": f"{count:,}"}
    node.caption = title if forked else _("dynamic branches")
    if forked:
        ranked = sorted(forked, key=lambda status: WORST_FIRST.index(status) if status in WORST_FIRST else 0)
        node.mark, node.counts = StepMark(ranked[0]), {status: forked[status] for status in ranked}
    return node
