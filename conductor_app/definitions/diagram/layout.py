"""Layout of a diagram of a workflow definition as nested blocks: steps, sequences, branches, loops, TRY_CATCH steps.

Every block knows its size before it is drawn, so that the block around it can reserve the space. The cost is linear in
the number of steps.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...core.definition import (
    Body,
    Flow,
    as_steps,
    bodies_of,
    references_inside,
    structure_of,
    structure_of_step,
    type_of,
    walk,
)
from ...core.primitives import JsonValue
from ...core.step_types.sub_workflows import SubWorkflow
from .canvas import (
    BOX_HEIGHT,
    BOX_WIDTH,
    FOOT,
    GAP,
    INSERTION_ABOVE,
    INSERTION_BELOW,
    MAX_LABEL_WIDTH,
    ROW_GAP,
    Block,
    Canvas,
    Diagram,
    DiagramFrame,
    DiagramNode,
    EdgeLabel,
    InsertionPoint,
    case_label,
    text_width,
)
from .marks import NO_MARKS, DiagramFolding, IterationChoice, IterationPicker, StepMark, StepMarks, tree_id

WORST_FIRST = ("FAILED", "TIMED_OUT", "CANCELED", "ACTIVE", "COMPLETED_WITH_ERRORS", "SKIPPED", "COMPLETED")
"""Order of statuses in a box that stands for many tasks. The box has the color of the first one that occurs."""
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
PAD = 16
LANE = 26
"""Width of the lane for the line back to the start of a loop."""
LABEL_HEIGHT = 22
PICKER_HEIGHT = 38
"""Height above a loop that has links to its iterations."""
BACK = 22
"""Height between the body of a loop and the line back to its start."""
MAX_DEPTH = 60
FOLDABLE_FLOWS = (Flow.FORK, Flow.LOOP, Flow.PHASES)
"""Steps that can be collapsed. The tree of a run has a node for each of them."""
MAX_BRANCHES = 16
"""Branches that are drawn, preferably those that need attention. One box counts the others."""
HEAD = 40
JOINED = 12
"""Height below the line that joins the branches."""
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


def layout_sequence(steps: JsonValue, path: str, canvas: Canvas, depth: int = 0, label: str = "") -> SequenceBlock:
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


class StepBox:
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
    return "sub_workflow" if type_of(step) == SubWorkflow.type else SHAPE_BY_FLOW[structure_of_step(step).flow]


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


class LoopBlock:
    """A loop step with its body and a line back to the start."""

    def __init__(self, box: StepBox, body: Any, picker: IterationPicker | None) -> None:
        self.box, self.body, self.picker = box, body, picker
        self.head = PICKER_HEIGHT if picker else PAD
        self.left = max(body.left, BOX_WIDTH // 2) + PAD
        self.right = max(body.right, BOX_WIDTH // 2) + PAD + LANE
        self.height = self.head + BOX_HEIGHT + ROW_GAP + body.height + ROW_GAP + PAD
        self.was_entered, self.was_exited, self.has_exit = box.was_entered, box.was_exited, True

    def draw(self, canvas: Canvas, axis: int, top: int) -> None:
        faint = canvas.is_faint(self.was_entered)
        extent = (axis - self.left, top, self.left + self.right, self.height)
        canvas.frames.append(DiagramFrame(*extent, faint, self.picker, axis))
        canvas.draw_line([(axis, top), (axis, top + self.head)], self.was_entered)
        self.box.draw(canvas, axis, top + self.head)
        head = top + self.head + BOX_HEIGHT
        canvas.draw_line([(axis, head), (axis, head + ROW_GAP)], self.body.was_entered, arrow=bool(self.body.height))
        canvas.add_insertion(self.body.entry, axis, head + ROW_GAP // 2)
        self.body.draw(canvas, axis, head + ROW_GAP)
        end = head + ROW_GAP + self.body.height
        bottom, lane = top + self.height, axis + self.right - LANE + 6
        middle = head - BOX_HEIGHT // 2
        back = [(axis, end + BACK), (lane, end + BACK), (lane, middle), (axis + BOX_WIDTH // 2, middle)]
        canvas.draw_line(back, bool(self.box.node.mark and self.box.node.mark.last_iteration > 1), arrow=True)
        canvas.draw_line([(axis, end), (axis, bottom)], self.was_exited)
        canvas.add_insertion(self.body.exit, axis, end + BACK // 2)


class GuardedBlock:
    """A TRY_CATCH step: its body and handlers side by side, and its final tasks below."""

    def __init__(self, box: StepBox, columns: list[tuple[str, Any]], last: Any | None) -> None:
        self.box, self.columns, self.last = box, columns, last
        inner = sum(column.left + column.right for _label, column in columns) + GAP * (len(columns) - 1)
        ends: list[Block] = [box, *([last] if last else [])]
        self.inner = inner
        self.left = max(inner - inner // 2, *(end.left for end in ends)) + PAD
        self.right = max(inner // 2, *(end.right for end in ends)) + PAD
        self.body = max(column.height for _label, column in columns)
        tail = LABEL_HEIGHT + ROW_GAP + last.height if last else 0
        self.height = PAD + BOX_HEIGHT + ROW_GAP + LABEL_HEIGHT + self.body + FOOT - 14 + ROW_GAP + tail + PAD
        self.was_entered, self.was_exited, self.has_exit = box.was_entered, box.was_exited, True

    def draw(self, canvas: Canvas, axis: int, top: int) -> None:
        faint = canvas.is_faint(self.was_entered)
        canvas.frames.append(DiagramFrame(axis - self.left, top, self.left + self.right, self.height, faint))
        canvas.draw_line([(axis, top), (axis, top + PAD)], self.was_entered)
        self.box.draw(canvas, axis, top + PAD)
        fork = top + PAD + BOX_HEIGHT + 14
        head = top + PAD + BOX_HEIGHT + ROW_GAP + LABEL_HEIGHT
        foot = head + self.body + FOOT
        x = axis - self.inner // 2
        for label, column in self.columns:
            own = x + column.left
            begin = [(axis, fork - 14), (axis, fork), (own, fork), (own, head)]
            arrow, is_faint = bool(column.height), column.is_absent or canvas.is_faint(column.was_entered)
            canvas.draw_line(begin, column.was_entered, arrow, is_absent=column.is_absent)
            canvas.add_insertion(column.entry, own, head - INSERTION_ABOVE)
            canvas.labels.append(case_label(own + 12, head - 11, label, "", is_faint))
            column.draw(canvas, own, head)
            if column.has_exit:
                end = [(own, head + column.height), (own, foot), (axis, foot)]
                canvas.draw_line(end, column.was_exited, is_absent=column.is_absent)
                canvas.add_insertion(column.exit, own, head + column.height + INSERTION_BELOW)
            x = own + column.right + GAP
        below = foot + ROW_GAP - 14
        if self.last:
            below += LABEL_HEIGHT
            is_faint = self.last.is_absent or canvas.is_faint(self.last.was_entered)
            canvas.labels.append(EdgeLabel(axis + 12, below - 10, "finally", is_faint))
            canvas.draw_line([(axis, foot), (axis, below)], self.last.was_entered, arrow=bool(self.last.height))
            canvas.add_insertion(self.last.entry, axis, below - 14)
            self.last.draw(canvas, axis, below)
            below += self.last.height
        canvas.draw_line([(axis, below if self.last else foot), (axis, top + self.height)], self.was_exited)
        if self.last:
            canvas.add_insertion(self.last.exit, axis, below + ROW_GAP // 2)


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


def _insertion_point(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> InsertionPoint | None:
    """Return the place between two steps. There is none between a fork and its join."""
    if structure_of_step(before).forks and structure_of_step(after).flow is Flow.JOIN:
        return None
    return InsertionPoint(path, str(before.get("taskReferenceName") or ""))


def _layout_step(step: Mapping[str, Any], path: str, follower: JsonValue, canvas: Canvas, depth: int) -> Block:
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


def _branches_by_status(follower: JsonValue, canvas: Canvas) -> Mapping[str, int]:
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
            _("%(count)s of %(total)s branches done") % {"count": passed, "total": len(parts)}
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
