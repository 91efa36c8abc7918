"""State of the steps of a definition in a run: one mark per step."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Max

from ....models import Run

GOOD_ENDS = frozenset(("COMPLETED", "COMPLETED_WITH_ERRORS", "SKIPPED"))


@dataclass(frozen=True, slots=True)
class StepMark:
    """State of one step: the status of its newest task, its number of tasks, and its last iteration if it is a loop.

    `total`: number of iterations of the loop, 0 if unknown; `status_text`: text to show instead of the status.
    """

    status: str
    count: int = 1
    last_iteration: int = 0
    total: int = 0
    status_text: str = ""

    @property
    def has_passed(self) -> bool:
        return self.status in GOOD_ENDS


@dataclass(frozen=True, slots=True)
class StepMarks:
    """Marks by step reference.

    `forked`: number of dynamic branches by status, by the reference of the join after the fork; `is_run`: False if the
    diagram shows a definition without a run, so that steps without a mark are not drawn faint.
    """

    marks: Mapping[str, StepMark] = field(default_factory=dict)
    forked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_run: bool = True

    def get(self, ref: str) -> StepMark | None:
        return self.marks.get(ref)

    @classmethod
    def from_tasks(cls, tasks: Iterable[Any]) -> "StepMarks":
        """Build marks from tasks, oldest first. A task is any object with `ref`, `status` and `iteration`."""
        marks: dict[str, StepMark] = {}
        for task in tasks:
            before = marks.get(task.ref)
            marks[task.ref] = StepMark(task.status, before.count + 1 if before else 1, task.iteration)
        return cls(marks)


NO_MARKS = StepMarks(is_run=False)


def marks_of_run(run: Run) -> StepMarks:
    """Return the marks of a run. Runs two queries; their results do not grow with the iterations of loops."""
    written = run.tasks.filter(branch_head="").values("ref", "status")
    marks: dict[str, StepMark] = {}
    newest: dict[str, int] = {}
    for row in written.annotate(count=Count("pk"), last=Max("seq"), last_iteration=Max("iteration")).order_by(
        "ref", "status"
    ):
        ref, before = row["ref"], marks.get(row["ref"])
        count, last_iteration = (
            row["count"] + (before.count if before else 0),
            max(row["last_iteration"], before.last_iteration if before else 0),
        )
        is_newer = row["last"] > newest.get(ref, -1)
        marks[ref] = StepMark(row["status"] if is_newer or before is None else before.status, count, last_iteration)
        newest[ref] = max(row["last"], newest.get(ref, -1))
    heads = run.tasks.exclude(branch_head="").exclude(joined_by="").values_list("joined_by", "status")
    forked: dict[str, dict[str, int]] = {}
    for join, status, count in heads.annotate(count=Count("pk")).order_by("joined_by", "status"):
        forked.setdefault(join, {})[status] = count
    return StepMarks(marks, forked)
