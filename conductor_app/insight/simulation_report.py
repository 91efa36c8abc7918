"""A try told as a story: what happened in which order, what was never reached, and the marks for the picture."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.language.lint.places import spots
from ..core.simulation.outcomes import INSIDE
from .diagram import Mark, Seen

SPELLED = {
    "SCHEDULED": "ACTIVE",
    "IN_PROGRESS": "ACTIVE",
    "FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD",
}
AROUND = frozenset(("JOIN", "EXCLUSIVE_JOIN", "DO_WHILE", "FOR_EACH", "TRY_CATCH", "SUB_WORKFLOW"))
"""Types that are open as long as others are."""
MOST_SHOWN = 300
MOST_NAMED = 10
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
    """The whole try, or its beginning up to a moment; `inner`: the marks of sub-workflows by the way to their steps.

    `stops_at`: the tasks that are still open and of which nobody has said how they end.
    """

    status: str
    reason: str
    stops_at: list[str]
    output: Any
    moments: list[Moment]
    count: int
    until: int
    unreached: list[str]
    seen: Seen
    inner: Mapping[str, Seen] = field(default_factory=dict)

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
    reached = {_ref(task) for task in tasks}
    return Played(
        status=execution["status"],
        reason=execution.get("reasonForIncompletion") or "",
        stops_at=[task["referenceTaskName"] for task in tasks if _is_waited_for(task)][:MOST_NAMED],
        output=execution.get("output"),
        moments=_moments(tasks, begun, children or {}),
        count=len(tasks),
        until=until,
        unreached=[spot.ref for spot in spots(document.get("tasks")) if spot.ref and spot.ref not in reached],
        seen=_seen(tasks[:until]),
        inner={way: _seen(inside) for way, inside in _inner(tasks[:until], children or {}).items()},
    )


def _inner(tasks: Iterable[dict[str, Any]], children: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The tasks of sub-workflows by the way to their steps; of several children of one step, those of all."""
    found: dict[str, list[dict[str, Any]]] = {}
    for way, child in _children(tasks, children, "", 0):
        found.setdefault(way, []).extend(child["tasks"])
    return found


def _children(
    tasks: Iterable[dict[str, Any]], children: Mapping[str, Any], before: str, depth: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for task in tasks:
        child = children.get(task.get("subWorkflowId") or "") if depth < DEEPEST else None
        if child is not None:
            way = f"{before}{_ref(task)}"
            yield way, child
            yield from _children(child["tasks"], children, f"{way}{INSIDE}", depth + 1)


def _seen(tasks: Sequence[dict[str, Any]]) -> Seen:
    return Seen(_marks(tasks), _forked(tasks))


def _forked(tasks: Sequence[dict[str, Any]]) -> dict[str, Counter[str]]:
    """How the tasks are for which a join waits, of all turns; only that of a dynamic fork is ever asked for."""
    statuses = [(_ref(task), _spelled(task["status"])) for task in tasks]
    joins = [(_ref(task), (task.get("inputData") or {}).get("joinOn") or ()) for task in tasks if _type(task) == "JOIN"]
    joined: dict[str, set[str]] = {}
    for join, names in joins:
        joined.setdefault(join, set()).update(name.split("__")[0] for name in names)
    return {join: Counter(status for ref, status in statuses if ref in refs) for join, refs in joined.items()}


def _is_waited_for(task: Mapping[str, Any]) -> bool:
    """Whether it is open, and by itself rather than for others."""
    return _spelled(task["status"]) == "ACTIVE" and _type(task) not in AROUND


def _type(task: Mapping[str, Any]) -> str:
    return task.get("taskType") or ""


def _ref(task: Mapping[str, Any]) -> str:
    return task["referenceTaskName"].split("__")[0]


def _marks(tasks: Sequence[dict[str, Any]]) -> dict[str, Mark]:
    marks: dict[str, Mark] = {}
    names: dict[str, set[str]] = {}
    for task in tasks:
        ref = _ref(task)
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
        _type(task),
        _spelled(task["status"]),
        max((task.get("startTime") or task.get("scheduledTime") or begun) - begun, 0),
        task.get("inputData"),
        task.get("outputData"),
        task.get("reasonForIncompletion") or "",
        inner,
    )


def _spelled(status: str) -> str:
    return SPELLED.get(status, status)
