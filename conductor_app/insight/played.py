"""A try told as a story: what happened in which order, what was never reached, and the marks for the picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.language.lint.places import spots
from .diagram import Mark, Seen

SPELLED = {
    "SCHEDULED": "ACTIVE",
    "IN_PROGRESS": "ACTIVE",
    "FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD",
}
MOST_SHOWN = 300
DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Moment:
    """One attempt of the try."""

    number: int
    name: str
    type: str
    status: str
    after_ms: int
    input: Any
    output: Any
    reason: str
    inner: "Sequence[Moment]" = ()


@dataclass(frozen=True, slots=True)
class Played:
    """The whole try, or its beginning up to a moment."""

    status: str
    reason: str
    output: Any
    moments: list[Moment]
    count: int
    until: int
    unreached: list[str]
    seen: Seen

    @property
    def before(self) -> int:
        return max(self.until - 1, 0)

    @property
    def after(self) -> int:
        return min(self.until + 1, self.count)


def played(
    execution: Mapping[str, Any] | None,
    document: Mapping[str, Any],
    until: int | None,
    children: Mapping[str, Mapping[str, Any]] | None = None,
) -> Played | None:
    """The story of an execution; `until`: only so many of its attempts. None where there is none.

    `children`: the executions of sub-workflows that were played too, by their ids.
    """
    if execution is None:
        return None
    tasks = execution["tasks"]
    until = len(tasks) if until is None else min(until, len(tasks))
    begun = execution.get("createTime") or 0
    marks = _marks(tasks[:until])
    reached = {task["referenceTaskName"].split("__")[0] for task in tasks}
    return Played(
        status=execution["status"],
        reason=execution.get("reasonForIncompletion") or "",
        output=execution.get("output"),
        moments=_moments(tasks, begun, children or {}),
        count=len(tasks),
        until=until,
        unreached=[spot.ref for spot in spots(document.get("tasks")) if spot.ref and spot.ref not in reached],
        seen=Seen(marks),
    )


def _marks(tasks: list[dict[str, Any]]) -> dict[str, Mark]:
    marks: dict[str, Mark] = {}
    names: dict[str, set[str]] = {}
    for task in tasks:
        ref = task["referenceTaskName"].split("__")[0]
        names.setdefault(ref, set()).add(task["referenceTaskName"])
        marks[ref] = Mark(_spelled(task["status"]), len(names[ref]), task.get("iteration") or 0)
    return marks


def _moments(tasks: Sequence[dict[str, Any]], begun: int, children: Mapping[str, Any], depth: int = 0) -> list[Moment]:
    found = []
    for number, task in enumerate(tasks[:MOST_SHOWN], 1):
        child = children.get(task.get("subWorkflowId") or "") if depth < DEEPEST else None
        inner = _moments(child["tasks"], begun, children, depth + 1) if child else []
        found.append(_moment(number, task, begun, inner))
    return found


def _moment(number: int, task: dict[str, Any], begun: int, inner: Sequence[Moment]) -> Moment:
    return Moment(
        number,
        task["referenceTaskName"],
        task.get("taskType") or "",
        _spelled(task["status"]),
        max((task.get("startTime") or task.get("scheduledTime") or begun) - begun, 0),
        task.get("inputData"),
        task.get("outputData"),
        task.get("reasonForIncompletion") or "",
        inner,
    )


def _spelled(status: str) -> str:
    return SPELLED.get(status, status)
