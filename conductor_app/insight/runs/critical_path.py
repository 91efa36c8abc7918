"""The critical path: the chain of tasks that determined the duration of a run, each started after the one before."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Subquery

from ...core.step_structure import DEFAULT_TYPE, Flow, structure_of_step
from ...core.step_tree import bodies_of
from ...models import Attempt, Run, Task
from ..definitions.parsed_definitions import parsed_definition
from ..tasks.attempt_waits import CONTAINER_STEP_TYPES

MAX_TASKS = 10_000
"""Tasks of a run above which no critical path is computed."""
Branch = tuple[str, int, int]
"""Reference of a fork, number of loops around the fork, number of the branch."""


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """One task as a time span. `branch_head`: the head of its branch, if the task belongs to a dynamic fork."""

    key: str
    ref: str
    begin: int
    end: int
    seq: int
    type: str = DEFAULT_TYPE
    iteration_path: tuple[str, ...] = ()
    branch_head: str = ""
    status: str = "COMPLETED"
    name: str = ""

    @property
    def duration_ms(self) -> int:
        return self.end - self.begin


def enclosing_branches(
    tasks: Sequence[Mapping[str, Any]], above: tuple[Branch, ...] = (), loops: int = 0
) -> dict[str, tuple]:
    """Return the fork branches around each step, outermost first, by reference."""
    found: dict[str, tuple[Branch, ...]] = {}
    for task in tasks:
        ref, structure = str(task.get("taskReferenceName")), structure_of_step(task)
        found[ref] = above
        deeper = loops + structure.iterates + bool(structure.item_type)
        for number, body in enumerate(bodies_of(task)):
            place = (*above, (ref, loops, number)) if structure.flow is Flow.FORK else above
            found |= enclosing_branches(body.steps, place, deeper)
    return found


def critical_path(
    spans: Iterable[TaskSpan], branches_by_ref: Mapping[str, tuple[Branch, ...]] | None = None, last: str = ""
) -> list[TaskSpan]:
    """Return the critical path, first task first.

    `last`: key of the task that the path ends with; by default the task that ended last. Steps that only wait for
    other tasks (joins, loops, forks) are not part of the path; the tasks they waited for are.
    """
    links = sorted(
        (each for each in spans if each.type not in CONTAINER_STEP_TYPES), key=lambda each: (each.end, each.seq)
    )
    if not links:
        return []
    span_index = _SpanIndex(links, [each.end for each in links], branches_by_ref or {}, _branch_starts(links))
    found = [next((each for each in links if each.key == last), None) or _last_ended(links)]
    while (before := span_index.find_predecessor(found[-1])) is not None:
        found.append(before)
    return found[::-1]


def _last_ended(links: Sequence[TaskSpan]) -> TaskSpan:
    """Return the span that ended last. Of spans that ended together, a canceled one is the last choice."""
    return max(links, key=lambda each: (each.end, each.status != "CANCELED", each.seq))


def _branch_starts(links: Iterable[TaskSpan]) -> dict[str, int]:
    """Return when each dynamic branch started, by branch head. Branches of one fork start together."""
    branch_starts: dict[str, int] = {}
    for each in links:
        if each.branch_head:
            branch_starts[each.branch_head] = min(branch_starts.get(each.branch_head, each.begin), each.begin)
    return branch_starts


@dataclass(frozen=True, slots=True)
class _SpanIndex:
    """Spans sorted by their end, with the fork branches they belong to."""

    links: Sequence[TaskSpan]
    ends: Sequence[int]
    branches_by_ref: Mapping[str, tuple[Branch, ...]]
    branch_starts: Mapping[str, int]

    def find_predecessor(self, after: TaskSpan) -> TaskSpan | None:
        """Return the span that ended last before this one began, among those that can lead to it."""
        for place in range(bisect_right(self.ends, after.begin) - 1, -1, -1):
            each = self.links[place]
            if each.seq < after.seq and not self._are_parallel(each, after):
                return each
        return None

    def _are_parallel(self, one: TaskSpan, other: TaskSpan) -> bool:
        """Return True if the spans are in different branches of one fork, so that neither leads to the other."""
        if (
            one.branch_head
            and other.branch_head
            and one.branch_head != other.branch_head
            and self.branch_starts[one.branch_head] == self.branch_starts[other.branch_head]
        ):
            return True
        for mine, theirs in zip(
            self.branches_by_ref.get(one.ref, ()), self.branches_by_ref.get(other.ref, ()), strict=False
        ):
            fork, loops, branch = mine
            if (fork, loops) != theirs[:2] or one.iteration_path[:loops] != other.iteration_path[:loops]:
                return False
            if branch != theirs[2]:
                return True
        return False


def critical_path_of(run: Run, now: int) -> list[TaskSpan] | None:
    """Return the critical path of a run, or None if it has more than MAX_TASKS tasks. Runs one query."""
    ended = Attempt.objects.filter(pk=OuterRef("attempt_id")).values("ended_at")[:1]
    columns = (
        "run_id",
        "attempt_id",
        "ref",
        "iteration_path",
        "created_at",
        "seq",
        "type",
        "branch_head",
        "status",
        "name",
    )
    rows = Task.objects.filter(run_id=run.pk).order_by().annotate(end=Subquery(ended)).only(*columns)
    tasks = list(rows[: MAX_TASKS + 1])
    if len(tasks) > MAX_TASKS:
        return None
    definition = parsed_definition(run.resolved_definition_id)
    branches_by_ref = enclosing_branches(definition.document.get("tasks") or ()) if definition else {}
    failed = next((str(task) for task in tasks if task.attempt_id == run.failed_attempt_id), "")
    return critical_path((task_span(task, task.end, now) for task in tasks), branches_by_ref, failed)


def task_span(task: Task, ended_at: int | None, now: int) -> TaskSpan:
    """Return the span of a task, up to the end of its last attempt, or up to now if the task is open."""
    iteration_path = tuple(part for part in task.iteration_path.split(".") if part)
    end = now if ended_at is None else ended_at
    return TaskSpan(
        str(task),
        task.ref,
        task.created_at,
        end,
        task.seq,
        task.type,
        iteration_path,
        task.branch_head,
        task.status,
        task.name,
    )
