"""The critical path: the chain of tasks that determined the duration of a run, each started after the one before."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.step_structure import Flow
from ...models import Run
from ..definitions.parsed_definitions import parsed_definition
from ..tasks.attempt_waits import CONTAINER_STEP_TYPES
from .step_places import enclosing_bodies
from .task_spans import TaskSpan

Branch = tuple[str, int, int]
"""Reference of a fork, number of loops around the fork, number of the branch."""


def enclosing_branches(tasks: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Branch, ...]]:
    """Return the fork branches around each step, outermost first, by reference."""
    return {
        ref: tuple((each.ref, each.loops, each.number) for each in bodies if each.flow is Flow.FORK)
        for ref, bodies in enclosing_bodies(tasks).items()
    }


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


def critical_path_among(run: Run, spans: Sequence[TaskSpan]) -> list[TaskSpan]:
    """Return the critical path among the tasks of a run."""
    definition = parsed_definition(run.resolved_definition_id)
    branches_by_ref = enclosing_branches(definition.document.get("tasks") or ()) if definition else {}
    failed = next((each.key for each in spans if each.attempt_id == run.failed_attempt_id), "")
    return critical_path(spans, branches_by_ref, failed)
