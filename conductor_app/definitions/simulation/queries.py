"""What a simulation begins with, recent outputs and sub-workflows, and the report on a simulated run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...access.visibility import visible
from ...core.definition import DEFAULT_TYPE, type_of, types_where, walk
from ...core.expressions.json_text import expression_texts
from ...core.expressions.jsonpath_segments import Property
from ...core.expressions.templates import parse_template
from ...core.primitives import JsonValue
from ...core.simulation import INSIDE
from ...core.step_types.forks import Join
from ...core.step_types.sub_workflows import SubWorkflow
from ...runs.models import Attempt
from ..diagram.marks import StepMark, StepMarks
from ..models import WorkflowDefinition
from ..policies import type_label
from ..validation import MAX_EXAMPLE_SIZE, newest_run_ids

LIMIT = 400
MAX_DEPTH = 3
MAX_SUB_WORKFLOWS = 12
MAX_TASKS_ELSEWHERE = 20
STATUS_WORDS = {"SCHEDULED": "ACTIVE", "IN_PROGRESS": "ACTIVE", "FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD"}
CONTAINER_TYPES = types_where("waits_for_tasks") | {SubWorkflow.type}
"""Step types that are open only because other tasks are."""
MAX_SHOWN = 300
MAX_NAMED = 10
MAX_REPORTED_DEPTH = 4


def recorded_outputs(name: str) -> dict[str, Any]:
    """Return the newest output of each step, from the newest runs."""
    attempts = Attempt.objects.filter(
        run__in=newest_run_ids(name), status="COMPLETED", output_size__lte=MAX_EXAMPLE_SIZE, output_path=""
    ).order_by("run__created_at", "seq")
    return dict(attempts.values_list("task__ref", "output")[:LIMIT])


def newest_outputs(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the newest output of each worker's task in any run, by task name."""
    spots = [spot for document in documents for spot in walk(document.get("tasks"))]
    names = list(dict.fromkeys(spot.name for spot in spots if type_of(spot.step) == DEFAULT_TYPE))
    found: dict[str, Any] = {}
    for name in names[:MAX_TASKS_ELSEWHERE]:
        attempts = Attempt.objects.filter(
            name=name, status="COMPLETED", output_size__lte=MAX_EXAMPLE_SIZE, output_path="", run__isnull=False
        )
        newest = visible(attempts.exclude(output={})).order_by("-pk").values_list("output", flat=True)
        found.update((name, output) for output in newest[:1])
    return found


def members_read(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that expressions read from the output of each step, as nested mappings by step."""
    found: dict[str, Any] = {}
    references = (each.reference for text in expression_texts(document) for each in parse_template(text))
    for reference in references:
        if reference is None or reference.key != "output":
            continue
        members = found.setdefault(reference.root, {})
        for segment in reference.path.segments:
            if not isinstance(segment, Property) or not segment.is_single:
                break
            members = members.setdefault(segment.names[0], {})
    return found


@dataclass(frozen=True, slots=True)
class InnerWorkflow:
    """One sub-workflow: its definition, and the recent outputs of its steps."""

    document: Mapping[str, Any]
    recorded: Mapping[str, Any]


def inner_workflows(document: Mapping[str, Any]) -> dict[str, InnerWorkflow]:
    """Return the sub-workflows with a known definition, by the path to their steps, such as `first>second`."""
    found: dict[str, InnerWorkflow] = {}
    level = [("", document)]
    for _depth in range(MAX_DEPTH):
        level_references = [(path, *reference) for path, around in level for reference in _named_sub_workflows(around)]
        level = []
        for path, ref, named, inline_document in level_references[: MAX_SUB_WORKFLOWS - len(found)]:
            inner = inline_document if inline_document is not None else _newest_document(*named)
            if inner is None:
                continue
            found[f"{path}{ref}"] = InnerWorkflow(inner, recorded_outputs(str(inner.get("name") or "")))
            level.append((f"{path}{ref}{INSIDE}", inner))
    return found


def _named_sub_workflows(
    document: Mapping[str, Any],
) -> Iterator[tuple[str, tuple[str, Any], Mapping[str, Any] | None]]:
    """Yield reference, name and version, and inline definition of each sub-workflow in a definition."""
    for spot in walk(document.get("tasks")):
        param = spot.step.get("subWorkflowParam")
        if type_of(spot.step) != SubWorkflow.type or not spot.ref or not isinstance(param, Mapping):
            continue
        inline_document = param.get("workflowDefinition")
        if isinstance(inline_document, Mapping):
            yield spot.ref, ("", None), inline_document
        elif inline_document:
            continue  # An expression has a value only in a run.
        elif isinstance(name := param.get("name"), str) and "${" not in name:
            yield spot.ref, (name, param.get("version")), None


def _newest_document(name: str, version: Any) -> Mapping[str, Any] | None:
    rows = visible(WorkflowDefinition.objects.filter(name=name))
    if isinstance(version, int) and not isinstance(version, bool):
        rows = rows.filter(version=version)
    row = rows.order_by("-version").first()
    return row.document if row else None


@dataclass(frozen=True, slots=True)
class SimulatedAttempt:
    """One attempt of a simulated run. `after_ms`: milliseconds since the start of the run."""

    number: int
    name: str
    type: str
    status: str
    after_ms: int
    input: JsonValue
    output: JsonValue
    reason: str
    inner: "Sequence[SimulatedAttempt]" = ()

    @property
    def type_label(self) -> str:
        return type_label(self.type)


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """A simulated run, in whole or up to an attempt.

    `open_tasks`: open tasks without a mock result; `until`: number of attempts that the marks include; `inner`: marks
    of sub-workflows by the path to their steps.
    """

    status: str
    reason: str
    open_tasks: list[str]
    output: JsonValue
    attempts: list[SimulatedAttempt]
    count: int
    until: int
    unreached: list[str]
    step_marks: StepMarks
    inner: Mapping[str, StepMarks] = field(default_factory=dict)

    @property
    def before(self) -> int:
        return max(self.until - 1, 0)

    @property
    def after(self) -> int:
        return min(self.until + 1, self.count)


def simulation_report(
    execution: Mapping[str, Any] | None,
    document: Mapping[str, Any],
    until: int | None,
    children: Mapping[str, Mapping[str, Any]] | None = None,
) -> SimulationReport | None:
    """Return the report on a simulated execution, or None if there is no execution.

    `until`: number of attempts that the marks include; `children`: simulated executions of sub-workflows by id.
    """
    if execution is None:
        return None
    tasks = execution["tasks"]
    until = len(tasks) if until is None else min(until, len(tasks))
    started_at = execution.get("createTime") or 0
    reached = {_ref(task) for task in tasks}
    return SimulationReport(
        status=execution["status"],
        reason=execution.get("reasonForIncompletion") or "",
        open_tasks=[task["referenceTaskName"] for task in tasks if _is_waiting(task)][:MAX_NAMED],
        output=execution.get("output"),
        attempts=_simulated_attempts(tasks, started_at, children or {}),
        count=len(tasks),
        until=until,
        unreached=[spot.ref for spot in walk(document.get("tasks")) if spot.ref and spot.ref not in reached],
        step_marks=_marks_of(tasks[:until]),
        inner={path: _marks_of(inside) for path, inside in _tasks_by_path(tasks[:until], children or {}).items()},
    )


def _tasks_by_path(tasks: Iterable[dict[str, Any]], children: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the tasks of sub-workflows by the path to their steps. Several children of one step are combined."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, child in _walk_children(tasks, children, "", 0):
        found.setdefault(path, []).extend(child["tasks"])
    return found


def _walk_children(
    tasks: Iterable[dict[str, Any]], children: Mapping[str, Any], before: str, depth: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for task in tasks:
        child = children.get(task.get("subWorkflowId") or "") if depth < MAX_REPORTED_DEPTH else None
        if child is not None:
            path = f"{before}{_ref(task)}"
            yield path, child
            yield from _walk_children(child["tasks"], children, f"{path}{INSIDE}", depth + 1)


def _marks_of(tasks: Sequence[dict[str, Any]]) -> StepMarks:
    return StepMarks(_marks_by_ref(tasks), _joined_statuses(tasks))


def _joined_statuses(tasks: Sequence[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Count the statuses of the tasks that each join waits for, over all iterations."""
    statuses = [(_ref(task), _status_word(task["status"])) for task in tasks]
    joins = [
        (_ref(task), (task.get("inputData") or {}).get("joinOn") or ()) for task in tasks if _type(task) == Join.type
    ]
    joined: dict[str, set[str]] = {}
    for join, names in joins:
        joined.setdefault(join, set()).update(names)
    return {join: Counter(status for ref, status in statuses if ref in refs) for join, refs in joined.items()}


def _is_waiting(task: Mapping[str, Any]) -> bool:
    """Return True if a task is open, and not only because others are."""
    return _status_word(task["status"]) == "ACTIVE" and _type(task) not in CONTAINER_TYPES


def _type(task: Mapping[str, Any]) -> str:
    return task.get("taskType") or ""


def _ref(task: Mapping[str, Any]) -> str:
    return (task.get("workflowTask") or {}).get("taskReferenceName") or task["referenceTaskName"]


def _marks_by_ref(tasks: Sequence[dict[str, Any]]) -> dict[str, StepMark]:
    marks: dict[str, StepMark] = {}
    names: dict[str, set[str]] = {}
    for task in tasks:
        ref = _ref(task)
        names.setdefault(ref, set()).add(task["referenceTaskName"])
        marks[ref] = StepMark(_status_word(task["status"]), len(names[ref]), task.get("iteration") or 0)
    return marks


def _simulated_attempts(
    tasks: Sequence[dict[str, Any]], started_at: int, children: Mapping[str, Any], depth: int = 0
) -> list[SimulatedAttempt]:
    found = []
    for number, task in enumerate(tasks[:MAX_SHOWN], 1):
        child = children.get(task.get("subWorkflowId") or "") if depth < MAX_REPORTED_DEPTH else None
        inner = _simulated_attempts(child["tasks"], started_at, children, depth + 1) if child else []
        found.append(
            SimulatedAttempt(
                number,
                task["referenceTaskName"],
                _type(task),
                _status_word(task["status"]),
                max((task.get("startTime") or task.get("scheduledTime") or started_at) - started_at, 0),
                task.get("inputData"),
                task.get("outputData"),
                task.get("reasonForIncompletion") or "",
                inner,
            )
        )
    return found


def _status_word(status: str) -> str:
    return STATUS_WORDS.get(status, status)
