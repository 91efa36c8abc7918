"""Attempts as Conductor's Task documents (api §3.6), with their steps from cached definitions and dynamic branches."""

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import orjson
from django.db.models import QuerySet, TextField, Value
from django.db.models.functions import Cast

from ...core.decision_context import conductor_status, conductor_task_type
from ...core.definition import DEFAULT_TYPE, FORK, bodies_of, structure_of_step
from ...core.document.fields import normalize_step, normalize_task, normalize_workflow
from ...core.document.reading import ALLOWED_SECRETS
from ...core.errors import CONDUCTOR_LENGTH
from ...core.masking import redact_text
from ...core.rules.retries_and_timeouts import MAX_SECONDS
from ...core.states import COMPLETED, COMPLETED_WITH_ERRORS, SKIPPED
from ...core.step_types.decisions import DecisionStep, Switch
from ...core.step_types.forks import Join
from ...core.step_types.sub_workflows import SubWorkflow
from ...core.step_types.waiting import Wait
from ...core.step_types.worker_tasks import Dynamic
from ...db.fields import dumps, loads
from ...db.keyset_pages import row_type
from ...definitions.models import ResolvedDefinition
from ...utils import clock
from ..models import Attempt, Run, Task

Document = dict[str, Any]


class StepDocument:
    """A document with its cached JSON, so that replies need not serialize it again."""

    def __init__(self, document: Document | None) -> None:
        self.document = document

    @cached_property
    def json(self) -> orjson.Fragment:
        return orjson.Fragment(dumps(self.document) or "null")

    @cached_property
    def task_definition(self) -> "StepDocument":
        """Return the task definition that is embedded in the step, or an empty document."""
        return StepDocument((self.document or {}).get("taskDefinition"))

    def named(self, name: str) -> "StepDocument":
        """Return the document of a DYNAMIC step with the name of its task, as Conductor shows it."""
        document = self.document or {}
        if document.get("type") != Dynamic.type or document.get("name") == name:
            return self
        own = document.get("taskDefinition")
        definition = own if own is not default_definition(document) else default_definition({**document, "name": name})
        return StepDocument({**document, "name": name, "taskDefinition": definition})

    @cached_property
    def has_rate_limit(self) -> bool:
        """Return True if the tasks of the step show a rate limit window: those with a task definition or a worker."""
        document = self.document or {}
        return document.get("type") == DEFAULT_TYPE or document.get("taskDefinition") is not default_definition(
            document
        )

    @cached_property
    def isolation_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the isolation group and the execution namespace of the step's tasks."""
        structure, definition = structure_of_step(self.document or {}), self.task_definition.document or {}
        has_group = structure.is_isolated or structure.shows_isolation_group
        group = definition.get("isolationGroupId") if has_group else None
        name_space = definition.get("executionNameSpace") if structure.is_isolated else None
        return (("isolationGroupId", group or ""), ("executionNameSpace", name_space or ""))


Steps = dict[str, StepDocument]


class DefinitionDocuments:
    def __init__(self, document: Document) -> None:
        normalized = normalize_workflow({key: value for key, value in document.items() if key != ALLOWED_SECRETS})
        self.steps = steps_within(normalized["tasks"])
        self.workflow = StepDocument(normalized)

    def step_document(self, ref: str) -> Document:
        """Return the document of a step; empty if there is none."""
        return (self.steps[ref].document if ref in self.steps else None) or {}


@lru_cache(maxsize=500)
def definition_documents(resolved_definition_id: str) -> DefinitionDocuments:
    """Return the documents of a resolved definition. They are cached: a resolved definition never changes."""
    return DefinitionDocuments(ResolvedDefinition.objects.get(pk=resolved_definition_id).document)


def branch_documents(document: Document) -> Steps:
    """Return the steps of one dynamic branch, by reference."""
    return steps_within([normalize_step(document)])


def steps_within(steps: list[Document]) -> Steps:
    """Return the steps and their nested steps, by reference. Adds missing default task definitions."""
    found: Steps = {}
    waiting = list(steps)
    while waiting:
        if step := waiting.pop():
            if not step.get("taskDefinition"):
                step["taskDefinition"] = default_definition(step)
            found[step.get("taskReferenceName") or ""] = StepDocument(step)
            waiting.extend(each for body in bodies_of(step) for each in body.steps)
    return found


def unknown_step(ref: str, name: str) -> StepDocument:
    """Return a step for a task that is missing in its definition: name and reference only, never null (api §3.6)."""
    return steps_within([normalize_step({"name": name, "taskReferenceName": ref})])[ref]


def default_definition(step: Document) -> Document:
    """Return the task definition that Conductor shows for a step without one."""
    return _default_definition(step.get("name") or "", step.get("type") == DEFAULT_TYPE)


@lru_cache(maxsize=5_000)
def _default_definition(name: str, is_simple: bool) -> Document:
    limits = {} if is_simple else {"retryCount": 0, "responseTimeoutSeconds": 0}
    return {**normalize_task({"name": name, **limits})}


ROW_COLUMNS = (
    "id", "number", "seq", "status", "domain", "scheduled_at", "started_at", "updated_at", "ended_at", "lease_ms",
    "delay_ms", "callback_ms", "rate_count", "rate_seconds", "poll_count", "worker", "reason", "previous_id",
    "child_id", "name", "run_id", "ends_at", "task__ref", "task__iteration_path", "task__type", "task__status",
    "task__attempt_id", "task__iteration", "task__branch_head", "input_path", "output_path",
)  # fmt: skip
RUN_FACTS = ("id", "name", "correlation_id", "priority", "resolved_definition_id")

if TYPE_CHECKING:
    Row = Any
    RunFacts = Any
else:
    Row = row_type("Row", [name.replace("task__", "task_") for name in ROW_COLUMNS] + ["input", "output", "step_state"])
    RunFacts = row_type("RunFacts", RUN_FACTS)

column_values = attrgetter(*(name.replace("__", ".") for name in ROW_COLUMNS))
_attempt_values = attrgetter(*(name.replace("__", ".") for name in ROW_COLUMNS), "input", "output", "task.step_state")
_run_values = attrgetter(*RUN_FACTS)
_TEXT_COLUMNS = {"input_text": "input", "output_text": "output", "step_state_text": "task__step_state"}


def to_row(attempt: Attempt) -> Row:
    """Return the row of an attempt that was loaded as an object."""
    return Row._make(_attempt_values(attempt))


def load_rows(attempts: "QuerySet[Attempt]", *, with_payloads: bool = True) -> list[Row]:
    """Load the rows of a query in one statement. Payloads remain JSON text; without them, they are empty objects."""
    texts = {
        name: Cast(path, TextField()) if with_payloads else Value("{}", TextField())
        for name, path in _TEXT_COLUMNS.items()
    }
    return list(map(Row._make, attempts.annotate(**texts).values_list(*ROW_COLUMNS, *texts)))


def attempts_of(run_ids: Iterable[str]) -> "QuerySet[Attempt]":
    """Return the attempts of these runs in the order of their creation."""
    return Attempt.objects.filter(run_id__in=list(run_ids)).order_by("run_id", "seq")


def run_facts_of(run: Any) -> RunFacts:
    """Return the fields of a run that the documents of its tasks contain."""
    return RunFacts._make(_run_values(run))


def run_facts(run_ids: Iterable[str]) -> list[RunFacts]:
    """Load the fields of several runs that the documents of their tasks contain."""
    return list(map(RunFacts._make, Run.objects.filter(pk__in=list(run_ids)).values_list(*RUN_FACTS)))


def dynamic_branches_by_run(rows: list[Row]) -> dict[str, dict[str, Steps]]:
    """Return the dynamic branches of the rows of several runs, by run id. Runs one statement."""
    wanted = {(row.run_id, row.task_branch_head) for row in rows if row.task_branch_head}
    found: dict[str, dict[str, Steps]] = {row.run_id: {} for row in rows}
    if not wanted:
        return found
    refs = {branch_head.rpartition("@")[0] for _, branch_head in wanted}
    heads = Task.objects.filter(run_id__in={run_id for run_id, _ in wanted}, ref__in=refs)
    for run_id, ref, iteration_path, step_state in heads.values_list("run_id", "ref", "iteration_path", "step_state"):
        if (run_id, branch_head := f"{ref}@{iteration_path}") in wanted:
            found[run_id][branch_head] = branch_documents(_branch_document(step_state))
    for run_id, branch_head in wanted:
        found[run_id].setdefault(branch_head, {})
    return found


def dynamic_branches(rows: list[Row]) -> dict[str, Steps]:
    """Return the steps of the dynamic branches that the rows of one run belong to, by branch head."""
    branch_heads = {row.task_branch_head for row in rows if row.task_branch_head}
    if not branch_heads:
        return {}
    step_states = {
        row.task_branch_head: row.step_state
        for row in rows
        if row.task_branch_head == f"{row.task_ref}@{row.task_iteration_path}"
    }
    step_states |= {
        branch_head: _load_step_state(rows[0].run_id, branch_head) for branch_head in branch_heads - step_states.keys()
    }
    return {
        branch_head: branch_documents(_branch_document(step_state)) for branch_head, step_state in step_states.items()
    }


def _load_step_state(run_id: str, branch_head: str) -> Any:
    ref, _, iteration_path = branch_head.rpartition("@")
    return (
        Task.objects.filter(run_id=run_id, ref=ref, iteration_path=iteration_path)
        .values_list("step_state", flat=True)
        .first()
    )


def _branch_document(step_state: Any) -> dict[str, Any]:
    step_state = loads(step_state) if isinstance(step_state, str) else step_state
    return (step_state or {}).get("document") or {}


EXECUTED_STATUSES = frozenset((COMPLETED, COMPLETED_WITH_ERRORS, SKIPPED))
"""Task statuses for which Conductor sets `executed`: the run continues after them."""
NO_METADATA = {"additionalContext": {}, "additionalContextMap": {}, "empty": True}
"""Value of `executionMetadata` for every task: workers of this server add none."""
NAMED_BY_TYPE = frozenset((Join.type, Switch.type, DecisionStep.type, FORK))
"""Step types whose tasks show the type as `taskDefName` (execution §1.5)."""


def task_document(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as a document of plain values."""
    row, run = to_row(attempt), run_facts_of(attempt.run)
    return task_fields(row, run, step_of(row, run, dynamic_branches([row])), clock.now())


def wire_task(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt for an API reply, with its step as serialized JSON."""
    row, run = to_row(attempt), run_facts_of(attempt.run)
    return task_fields(row, run, step_of(row, run, dynamic_branches([row])), clock.now(), as_json=True)


def wire_tasks(ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the attempts with these ids for an API reply, in their order. Unknown ids are skipped."""
    rows = {row.id: row for row in load_rows(Attempt.objects.filter(pk__in=list(ids)))}
    runs = {run.id: run for run in run_facts({row.run_id for row in rows.values()})}
    known = [row for id in ids if (row := rows.get(id)) and row.run_id in runs]
    branch_steps, now = dynamic_branches_by_run(known), clock.now()
    return [wire_row(row, run := runs[row.run_id], step_of(row, run, branch_steps[row.run_id]), now) for row in known]


def task_documents(rows: list[Row], run: RunFacts, is_wire: bool) -> list[dict[str, Any]]:
    """Return the attempts of one run, for an API reply if `is_wire`, otherwise as plain values."""
    now, branch_steps, build_document = clock.now(), dynamic_branches(rows), wire_row if is_wire else plain_row
    return [build_document(row, run, step_of(row, run, branch_steps), now) for row in rows]


def wire_row(row: Row, run: RunFacts, step: StepDocument, now: int) -> dict[str, Any]:
    """Return a row for an API reply. Payloads are sent as the stored JSON text, without parsing."""
    document = task_fields(row, run, step, now, as_json=True)
    input, output = redact_text(row.input), redact_text(row.output)
    document["inputData"], document["outputData"] = orjson.Fragment(input), orjson.Fragment(output)
    return document


def plain_row(row: Row, run: RunFacts, step: StepDocument, now: int) -> dict[str, Any]:
    """Return a row with JSON texts as a document of plain values."""
    return task_fields(row._replace(input=loads(row.input), output=loads(row.output)), run, step, now)


def step_of(row: Row, run: RunFacts, branch_steps: dict[str, Steps]) -> StepDocument:
    steps = (
        branch_steps[row.task_branch_head]
        if row.task_branch_head
        else definition_documents(run.resolved_definition_id).steps
    )
    step = steps.get(row.task_ref)
    return step.named(row.name) if step else unknown_step(row.task_ref, row.name)


def task_fields(row: Row, run: RunFacts, step: StepDocument, now: int, *, as_json: bool = False) -> dict[str, Any]:
    """Return the fields of Task. Optional fields without a value are omitted. `as_json`: the step is JSON text."""
    is_newest = row.id == row.task_attempt_id
    iterations = row.task_iteration_path.split(".") if row.task_iteration_path else []
    iteration = int(iterations[-1]) if iterations else row.task_iteration
    kind = conductor_task_type(row.task_type, row.name)
    document = {
        "taskType": kind,
        "status": conductor_status(row.status, row.task_status if is_newest else ""),
        "inputData": row.input,
        "referenceTaskName": "__".join((row.task_ref, *iterations)),
        "retryCount": row.number,
        "seq": row.seq,
        "pollCount": poll_count(row),
        "taskDefName": kind if kind in NAMED_BY_TYPE else row.name or kind,
        "scheduledTime": row.scheduled_at,
        "startTime": row.started_at or 0,
        "endTime": row.ended_at or 0,
        "updateTime": row.updated_at or 0,
        "startDelayInSeconds": row.delay_ms // 1000,
        "retried": not is_newest,
        "executed": not is_newest or row.task_status in EXECUTED_STATUSES,
        "callbackFromWorker": True,
        "responseTimeoutSeconds": row.lease_ms // 1000,
        "workflowInstanceId": run.id,
        "workflowType": run.name,
        "taskId": row.id,
        "callbackAfterSeconds": callback_seconds(row),
        "outputData": row.output,
        "workflowTask": step.json if as_json else step.document,
        "taskDefinition": step.task_definition.json if as_json else step.task_definition.document,
        "rateLimitPerFrequency": row.rate_count,
        "rateLimitFrequencyInSeconds": row.rate_seconds if step.has_rate_limit else 0,
        "workflowPriority": run.priority,
        "iteration": iteration,
        "loopOverTask": iteration > 0,
        "firstStartTime": 0,
        "subworkflowChanged": False,
        "queueWaitTime": queue_wait_ms(row, now),
        "executionMetadata": NO_METADATA,
    }
    for name, value in (*optional_fields(row, run), *step.isolation_fields):
        if value:
            document[name] = value
    return document


def poll_count(row: Row) -> int:
    """Return how often the task was polled. Conductor polls SUB_WORKFLOW once, and WAIT when its time is over."""
    is_polled = row.task_type == SubWorkflow.type or (row.task_type == Wait.type and _ended_by_timer(row))
    return row.poll_count or int(is_polled)


def callback_seconds(row: Row) -> int:
    """Return `callbackAfterSeconds`. For a WAIT task, this is its duration, or 0 if it was completed early."""
    if row.task_type != Wait.type:
        return row.callback_ms // 1000
    if row.status == COMPLETED and not _ended_by_timer(row):
        return 0
    return min(max(row.ends_at - (row.started_at or row.scheduled_at), 0) // 1000, MAX_SECONDS)


def _ended_by_timer(row: Row) -> bool:
    return row.ended_at is not None and row.ended_at >= row.ends_at


def optional_fields(row: Row, run: RunFacts) -> tuple[tuple[str, str], ...]:
    """Return the optional fields of Task, including those without a value."""
    return (
        ("correlationId", run.correlation_id),
        ("retriedTaskId", row.previous_id),
        ("reasonForIncompletion", row.reason[:CONDUCTOR_LENGTH]),
        ("workerId", row.worker),
        ("domain", row.domain),
        ("subWorkflowId", row.child_id),
        ("externalInputPayloadStoragePath", row.input_path),
        ("externalOutputPayloadStoragePath", row.output_path),
    )


def queue_wait_ms(row: Row, now: int) -> int:
    """Return the milliseconds in the queue. After a callback, they count from the requested time (execution §1.5)."""
    if row.updated_at and row.callback_ms:
        return max(0, now - (row.updated_at + row.callback_ms))
    return row.started_at - row.scheduled_at if row.started_at else 0
