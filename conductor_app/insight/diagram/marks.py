"""What a run has made of the steps of its definition: one mark a step."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Max

from ...models import Run

GOOD_ENDS = frozenset(("COMPLETED", "COMPLETED_WITH_ERRORS", "SKIPPED"))


@dataclass(frozen=True, slots=True)
class StepMark:
    """What became of one step: its newest task, how many tasks it had, the newest turn of a loop.

    `total`: the turns that a loop will take, where that is known; `status_text`: what is shown instead of the status.
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
    """The marks by reference; `is_run` tells an untouched step of a run from a step of a mere definition.

    `forked`: how many branches of dynamic forks are in which status, by the reference of the join behind the fork.
    """

    marks: Mapping[str, StepMark] = field(default_factory=dict)
    forked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_run: bool = True

    def get(self, ref: str) -> StepMark | None:
        return self.marks.get(ref)

    @classmethod
    def from_tasks(cls, tasks: Iterable[Any]) -> "StepMarks":
        """From tasks at hand, oldest first: anything with `ref`, `status` and `iteration`."""
        marks: dict[str, StepMark] = {}
        for task in tasks:
            before = marks.get(task.ref)
            marks[task.ref] = StepMark(task.status, before.count + 1 if before else 1, task.iteration)
        return cls(marks)


NO_MARKS = StepMarks(is_run=False)


def marks_of_run(run: Run) -> StepMarks:
    """What a run's tasks have come to, in two queries whose answers do not grow with the turns of its loops."""
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
