"""Layout of a diagram as nested blocks: single steps, sequences, branches side by side, framed bodies.

Every block knows its size before it is drawn, so that the block around it can reserve the space. The cost is linear in
the number of steps.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ....core.step_structure import Body, Flow, as_steps, structure_of, structure_of_step
from ....core.step_tree import bodies_of, references_inside, walk
from .boxes import DynamicForkBox, StepBox, folded_branch_box, remaining_branches_box, steps_text
from .canvas import (
    BOX_HEIGHT,
    FOOT,
    GAP,
    INSERTION_ABOVE,
    INSERTION_BELOW,
    MAX_LABEL_WIDTH,
    ROW_GAP,
    Block,
    Canvas,
    DiagramNode,
    InsertionPoint,
    case_label,
)
from .folding import DiagramFolding, tree_id
from .frames import GuardedBlock, LoopBlock
from .text_fit import text_width

MAX_DEPTH = 60
FOLDABLE_FLOWS = (Flow.FORK, Flow.LOOP, Flow.PHASES)
"""Steps that can be collapsed. The tree of a run has a node for each of them."""
MAX_BRANCHES = 16
"""Branches that are drawn, preferably those that need attention. One box counts the others."""

HEAD = 40
JOINED = 12
"""Height below the line that joins the branches."""


class SequenceBlock:
    """A sequence of steps on one axis."""

    def __init__(self, blocks: list[Block], label: str = "", places: Sequence[InsertionPoint | None] = ()) -> None:
        self.blocks = blocks
        self.is_absent = False
        self.places = places or [None] * (len(blocks) + 1)
        """Where a step can be inserted: before each block, and after the last."""
        self.entry, self.exit = self.places[0], self.places[-1] if blocks else None
        self.left = max((block.left for block in blocks), default=GAP)
        self.right = max((block.right for block in blocks), default=16 + min(round(text_width(label)), MAX_LABEL_WIDTH))
        self.height = sum(block.height for block in blocks) + ROW_GAP * max(len(blocks) - 1, 0)
        self.was_entered = blocks[0].was_entered if blocks else False
        self.was_exited = blocks[-1].was_exited if blocks else False
        self.has_exit = blocks[-1].has_exit if blocks else True

    def draw(self, canvas: Canvas, axis: int, top: int) -> None:
        for place, block in enumerate(self.blocks):
            if place:
                was_taken = block.was_entered and self.blocks[place - 1].was_entered
                if self.blocks[place - 1].has_exit:
                    canvas.draw_line([(axis, top), (axis, top + ROW_GAP)], was_taken, arrow=True)
                    canvas.add_insertion(self.places[place], axis, top + ROW_GAP // 2)
                top += ROW_GAP
            block.draw(canvas, axis, top)
            top += block.height


class SplitBlock:
    """A step with its branches, which join again below."""

    def __init__(self, box: StepBox, branches: list[tuple[str, SequenceBlock]]) -> None:
        self.box, self.branches = box, branches
        self.value = box.node.mark.value if box.node.mark else ""
        widths = [branch.left + branch.right for _label, branch in branches]
        self.total = sum(widths) + GAP * max(len(widths) - 1, 0)
        self.left = max(self.total - self.total // 2, box.left)
        self.right = max(self.total // 2, box.right)
        inner = max((branch.height for _label, branch in branches), default=0)
        self.height = BOX_HEIGHT + HEAD + inner + FOOT + JOINED
        self.was_entered = box.was_entered
        self.skips_branches = box.was_exited and not any(branch.was_entered for _label, branch in branches)
        self.was_exited = any(map(self._was_branch_exited, branches))
        self.has_exit = any(branch.has_exit for _label, branch in branches) or not branches

    def _was_branch_exited(self, branch: tuple[str, SequenceBlock]) -> bool:
        return branch[1].was_exited if branch[1].blocks else self.skips_branches

    def draw(self, canvas: Canvas, axis: int, top: int) -> None:
        self.box.draw(canvas, axis, top)
        fork, head = top + BOX_HEIGHT + 14, top + BOX_HEIGHT + HEAD
        foot = top + self.height - JOINED
        x = axis - self.left + (self.left + self.right - self.total) // 2
        for label, branch in self.branches:
            own = x + branch.left
            entered = branch.was_entered if branch.blocks else self.skips_branches
            begin = [(axis, top + BOX_HEIGHT), (axis, fork), (own, fork), (own, head)]
            canvas.draw_line(begin, entered, arrow=bool(branch.blocks))
            canvas.add_insertion(branch.entry, own, head - INSERTION_ABOVE)
            if label:
                value = self.value if entered else ""
                canvas.labels.append(case_label(own + 12, head - 11, label, value, canvas.is_faint(entered)))
            branch.draw(canvas, own, head)
            if branch.has_exit:
                end = [(own, head + branch.height), (own, foot), (axis, foot), (axis, top + self.height)]
                canvas.draw_line(end, self._was_branch_exited((label, branch)))
                canvas.add_insertion(branch.exit, own, head + branch.height + INSERTION_BELOW)
            x = own + branch.right + GAP


def layout_sequence(steps: Any, path: str, canvas: Canvas, depth: int = 0, label: str = "") -> SequenceBlock:
    """Return the block of a list of steps, without entries that are not objects. `label`: text beside its line."""
    blocks: list[Block] = []
    places: list[InsertionPoint | None] = []
    previous: Mapping[str, Any] = {}
    listed = as_steps(steps)
    for place, step in enumerate(listed):
        if isinstance(step, Mapping) and canvas.has_room():
            follower = listed[place + 1] if place + 1 < len(listed) else None
            places.append(_insertion_point(f"{path}[{place}]", previous, step))
            blocks.append(_layout_step(step, f"{path}[{place}]", follower, canvas, depth))
            previous = step
    places.append(None if canvas.is_cut else _insertion_point(f"{path}[{len(listed)}]", previous, {}))
    return SequenceBlock(blocks, label, places)


def _insertion_point(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> InsertionPoint | None:
    """Return the place between two steps. There is none between a fork and its join."""
    if structure_of_step(before).forks and structure_of_step(after).flow is Flow.JOIN:
        return None
    return InsertionPoint(path, str(before.get("taskReferenceName") or ""))


def _layout_step(step: Mapping[str, Any], path: str, follower: Any, canvas: Canvas, depth: int) -> Block:
    flow = structure_of_step(step).flow if depth < MAX_DEPTH else Flow.LEAF
    box = StepBox(step, path, canvas)
    if flow in FOLDABLE_FLOWS and _fold(box.node, canvas.folding):
        box.node.note = steps_text(len(references_inside(step)))
        return box
    if flow in (Flow.CHOICE, Flow.FORK):
        return _layout_split(step, path, box, canvas, depth)
    if flow is Flow.DYNAMIC_FORK:
        return DynamicForkBox(box, _branches_by_status(follower, canvas), canvas)
    if flow is Flow.LOOP:
        return _layout_loop(step, path, box, canvas, depth)
    if flow is Flow.PHASES:
        parts = [(body, _layout_body(body, path, canvas, depth)) for body in bodies_of(step)]
        if canvas.shows_absent_bodies:
            absent = structure_of_step(step).absent_bodies(step)
            parts += [(body, _layout_absent_body(body, path, canvas)) for body in absent]
        last = next((block for body, block in parts if body.is_final), None)
        return GuardedBlock(box, [(body.label, block) for body, block in parts if not body.is_final], last)
    return box


def _layout_loop(step: Mapping[str, Any], path: str, box: StepBox, canvas: Canvas, depth: int) -> LoopBlock:
    total = box.node.mark.last_iteration if box.node.mark else 0
    picker, choice = None, canvas.iterations
    if choice:
        picker = choice.picker(box.node.ref, total)
        choice.around.append((box.node.ref, choice.chosen.get(box.node.ref) or max(total, 1)))
    inner = [_layout_body(body, path, canvas, depth) for body in bodies_of(step)]
    if choice:
        choice.around.pop()
    return LoopBlock(box, inner[0] if inner else layout_sequence([], f"{path}.loopOver", canvas, depth + 1), picker)


def _layout_body(body: Body, path: str, canvas: Canvas, depth: int) -> SequenceBlock:
    return layout_sequence(body.steps, f"{path}.{body.place}", canvas, depth + 1, body.label)


def _layout_absent_body(body: Body, path: str, canvas: Canvas) -> SequenceBlock:
    block = layout_sequence([], f"{path}.{body.place}", canvas, label=body.label)
    block.is_absent = True
    return block


def _branches_by_status(follower: Any, canvas: Canvas) -> Mapping[str, int]:
    """Return the number of branches of a dynamic fork by status, as recorded for its join."""
    ref = str(follower.get("taskReferenceName")) if isinstance(follower, Mapping) else ""
    return canvas.step_marks.forked.get(ref, {})


def _layout_split(step: Mapping[str, Any], path: str, box: StepBox, canvas: Canvas, depth: int) -> SplitBlock:
    parts = list(bodies_of(step))
    visible = _visible_parts(parts, canvas)
    branches = [
        (part.label, _folded_branch(part, number, box, canvas) or _layout_body(part, path, canvas, depth))
        for number, part in enumerate(parts, 1)
        if any(part is each for each in visible)
    ]
    more = len(parts) - len(visible)
    if more:
        branches.append(("", SequenceBlock([remaining_branches_box(more, path, canvas)])))
    split = SplitBlock(box, branches)
    if structure_of_step(step).flow is Flow.FORK:
        passed = sum(branch.was_exited for _label, branch in branches)
        box.node.note = (
            _("%(count)s of %(total)s done") % {"count": passed, "total": len(parts)}
            if box.was_entered
            else ngettext("%(count)s branch", "%(count)s branches", len(parts)) % {"count": len(parts)}
        )
    return split


def _fold(node: DiagramNode, folding: DiagramFolding | None) -> bool:
    """Add the link that opens or closes a step that was reached. Return True if the step is collapsed."""
    if folding is None or node.mark is None:
        return False
    id = tree_id(node.ref, node.mark.iteration_path)
    node.is_folded = id in folding.closed
    node.fold_href = folding.link(id, not node.is_folded)
    return node.is_folded


def _folded_branch(part: Body, number: int, box: StepBox, canvas: Canvas) -> SequenceBlock | None:
    """Return one box for a collapsed branch of a fork, or None if it is open."""
    mark, folding = box.node.mark, canvas.folding
    if mark is None or folding is None or structure_of(box.node.type).flow is not Flow.FORK:
        return None
    id = tree_id(box.node.ref, mark.iteration_path, number)
    if id not in folding.closed:
        return None
    count = sum(1 for _ in walk(part.steps))
    folded = folded_branch_box(number, count, part.place, folding.link(id, False), canvas)
    last = part.steps[-1] if part.steps and isinstance(part.steps[-1], Mapping) else {}
    last_mark = canvas.step_marks.get(str(last.get("taskReferenceName")))
    folded.was_entered, folded.was_exited = True, last_mark is not None and last_mark.has_passed
    folded.node.is_faint = False
    return SequenceBlock([folded])


def _visible_parts(parts: list[Body], canvas: Canvas) -> list[Body]:
    """Return the branches to draw, in their order. Branches that need attention take precedence."""
    if len(parts) <= MAX_BRANCHES:
        return parts
    ranked = sorted(range(len(parts)), key=lambda place: (not _is_touched(parts[place], canvas), place))
    return [parts[place] for place in sorted(ranked[:MAX_BRANCHES])]


def _is_touched(part: Body, canvas: Canvas) -> bool:
    """Return True if the first step of the branch was reached and has not succeeded."""
    head = part.steps[0] if part.steps and isinstance(part.steps[0], Mapping) else {}
    mark = canvas.step_marks.get(str(head.get("taskReferenceName")))
    return mark is not None and not mark.has_passed
