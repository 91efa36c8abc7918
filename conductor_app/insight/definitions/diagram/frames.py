"""Framed blocks: a loop with its body, and a TRY_CATCH step with its body and handlers."""

from typing import Any

from .boxes import StepBox
from .canvas import (
    BOX_HEIGHT,
    BOX_WIDTH,
    FOOT,
    GAP,
    INSERTION_ABOVE,
    INSERTION_BELOW,
    ROW_GAP,
    Block,
    Canvas,
    DiagramFrame,
    EdgeLabel,
    case_label,
)
from .iterations import IterationPicker

PAD = 16
LANE = 26
"""Width of the lane for the line back to the start of a loop."""
LABEL_HEIGHT = 22
PICKER_HEIGHT = 38
"""Height above a loop that has links to its iterations."""
BACK = 22
"""Height between the body of a loop and the line back to its start."""


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
