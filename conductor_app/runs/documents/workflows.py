"""Runs as Conductor's Workflow documents (api §3.5), stored and simulated. Errors use Conductor's texts."""

from collections.abc import Collection, Iterable
from contextlib import nullcontext
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

import orjson
from django.db.models import Count, Q, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from ...core import snapshot
from ...core.errors import Conflict, NotFound
from ...core.masking import redact_text
from ...core.primitives import JsonValue
from ...core.snapshot import UNKNOWN, Task
from ...core.trace_context import HEADER
from ...db.keyset_pages import row_type
from ...db.statements import read_snapshot
from ...settings import conf
from ..models import Attempt, HistoryEntry, Run, TaskLog
from .tasks import (
    RUN_FACTS,
    DefinitionDocuments,
    Row,
    RunFacts,
    attempts_of,
    definition_documents,
    dynamic_branches,
    load_rows,
    run_facts_of,
    task_documents,
    task_fields,
    unknown_step,
)

PAYLOADS = ("input", "output", "variables")


def find_run(run_id: str, payloads: Collection[str] = ()) -> Run:
    """Return a run with the named payloads (`input`, `output`, `variables`). Runs one statement."""
    runs = Run.objects.defer(*(name for name in PAYLOADS if name not in payloads))
    return runs.filter(pk=run_id).first() or raise_run_not_found(run_id)


def raise_run_not_found(run_id: str) -> NoReturn:
    """Raise the error for an unknown run, in Conductor's words."""
    raise NotFound(f"No such workflow found by id: {run_id}")


def find_attempt(attempt_id: str) -> Attempt:
    """Return an attempt with its task and run."""
    found = Attempt.objects.of_runs().filter(pk=attempt_id).select_related("task", "run")
    attempt = found.defer("run__input", "run__output", "run__variables").first()
    if attempt is None:
        raise NotFound(f"Task not found for taskId: {attempt_id}")
    return attempt


def load_logs(attempt_id: str) -> list[dict[str, object]]:
    """Return the log of an attempt as Conductor's TaskExecLog, oldest line first (api §3.8)."""
    lines = TaskLog.objects.filter(attempt_id=attempt_id).order_by("at", "id").values_list("line", "at")
    return [{"log": line, "taskId": attempt_id, "createdTime": at} for line, at in lines]


RUN_COLUMNS = (
    "id", "name", "version", "resolved_definition_id", "status", "reason", "correlation_id", "priority",
    "created_at", "updated_at", "ended_at", "last_retried_at", "parent_id", "parent_attempt_id",
    "failed_refs", "failed_names", "domains", "limit_key", "is_held", "started_by", "event", "idempotency_key",
    "input_path", "output_path", "traceparent", "fairness",
)  # fmt: skip
if TYPE_CHECKING:
    RunRow = Any
else:
    RunRow = row_type("RunRow", [*RUN_COLUMNS, *PAYLOADS])

_run_values = attrgetter(*RUN_COLUMNS, *PAYLOADS)


def run_document(run: Run, with_tasks: bool = True) -> dict[str, Any]:
    """Return a run as a document of plain values."""
    row = RunRow._make(_run_values(run))
    tasks = task_documents(load_rows(attempts_of([run.id])), run_facts_of(run), is_wire=False) if with_tasks else []
    return workflow_fields(row, tasks, definition_documents(row.resolved_definition_id).workflow.document)


def run_document_without_payloads(run_id: str, *, with_tasks: bool = True) -> dict[str, Any]:
    """Return a run as a document whose inputs, outputs and variables are empty. They are not read."""
    run = Run.objects.defer(*PAYLOADS).get(pk=run_id)
    row = RunRow._make((*attrgetter(*RUN_COLUMNS)(run), *({} for _ in PAYLOADS)))
    rows = load_rows(attempts_of([run_id]), with_payloads=False) if with_tasks else []
    tasks = task_documents(rows, run_facts_of(run), is_wire=False) if with_tasks else []
    return workflow_fields(row, tasks, definition_documents(row.resolved_definition_id).workflow.document)


def wire_run(run_id: str, with_tasks: bool = True) -> dict[str, Any]:
    """Return a run for an API reply."""
    found = wire_runs(Run.objects.filter(pk=run_id), with_tasks)
    return found[0] if found else raise_run_not_found(run_id)


def wire_runs(runs: "QuerySet[Run]", with_tasks: bool = True) -> list[dict[str, Any]]:
    """Return the runs of a query for an API reply, with their tasks from the same database snapshot.

    Payloads are sent as the stored JSON text, without parsing.
    """
    texts = {f"{name}_text": Cast(name, TextField()) for name in PAYLOADS}
    with read_snapshot() if with_tasks else nullcontext():
        rows = [RunRow._make(values) for values in runs.annotate(**texts).values_list(*RUN_COLUMNS, *texts)]
        tasks = _wire_tasks(rows) if with_tasks else {}
    return [
        workflow_fields(
            _raw_payloads(row), tasks.get(row.id, []), definition_documents(row.resolved_definition_id).workflow.json
        )
        for row in rows
    ]


def _wire_tasks(runs: Iterable[RunRow]) -> dict[str, list[dict[str, Any]]]:
    by_id = {run.id: run for run in runs}
    groups = groupby(load_rows(attempts_of(by_id)), key=lambda row: row.run_id)
    return {id: task_documents(list(rows), run_facts_of(by_id[id]), is_wire=True) for id, rows in groups}


def _raw_payloads(row: RunRow) -> RunRow:
    return row._replace(**{name: orjson.Fragment(redact_text(getattr(row, name))) for name in PAYLOADS})


def workflow_fields(row: RunRow, tasks: list[dict[str, Any]], definition: JsonValue) -> dict[str, Any]:
    """Return the fields of Workflow. Optional fields without a value are omitted."""
    document = {
        "createTime": row.created_at,
        "updateTime": row.updated_at,
        "status": row.status,
        "endTime": row.ended_at or 0,
        "workflowId": row.id,
        "tasks": tasks,
        "input": row.input,
        "output": row.output,
        "taskToDomain": row.domains,
        "failedReferenceTaskNames": row.failed_refs,
        "failedTaskNames": row.failed_names,
        "workflowDefinition": definition,
        "priority": row.priority,
        "variables": row.variables,
        "lastRetriedTime": row.last_retried_at,
        "history": [],
        "rateLimited": row.is_held,
        "startTime": row.created_at,
        "workflowName": row.name,
        "workflowVersion": row.version,
        "ownerApp": "",
    }
    for name, value in optional_fields(row):
        if value:
            document[name] = value
    return document


def optional_fields(row: RunRow) -> tuple[tuple[str, str | None], ...]:
    """Return the optional fields of Workflow, including those without a value."""
    return (
        ("createdBy", row.started_by),
        ("parentWorkflowId", row.parent_id),
        ("parentWorkflowTaskId", row.parent_attempt_id),
        ("correlationId", row.correlation_id),
        ("reasonForIncompletion", row.reason),
        ("event", row.event),
        ("idempotencyKey", row.idempotency_key),
        ("rateLimitKey", row.limit_key),
        ("fairnessKey", (row.fairness or {}).get("key")),
        ("externalInputPayloadStoragePath", row.input_path),
        ("externalOutputPayloadStoragePath", row.output_path),
        (HEADER, row.traceparent),
    )


PAYLOADS_OMITTED = "conductor.payloadsOmitted"
TASK_DOCUMENT_BYTES = 2_000
"""The approximate size of the document of a task without its payloads."""


def failed_execution_document(run_id: str) -> dict[str, Any] | None:
    """Return a run with its tasks, or None if it was deleted.

    Payloads are omitted if the document would exceed the maximum size of an input, and so are the tasks if there are
    too many. The document then says where to read them.
    """
    payload_bytes, task_count = _measure(run_id)
    if payload_bytes is None:
        return None
    limit = conf.workflow_payload_max_bytes
    if payload_bytes + task_count * TASK_DOCUMENT_BYTES <= limit:
        failed = Run.objects.filter(pk=run_id).first()
        return run_document(failed, with_tasks=True) if failed else None
    document = run_document_without_payloads(run_id, with_tasks=task_count * TASK_DOCUMENT_BYTES <= limit)
    omitted = "The payloads" if document["tasks"] else "The payloads and tasks"
    note = f"{omitted} exceed {limit} bytes. Read them with GET /api/workflow/{run_id}."
    return document | {PAYLOADS_OMITTED: note}


def _measure(run_id: str) -> tuple[int | None, int]:
    """Return the total size of the payloads in the rows of a run in bytes, and the number of its attempts.

    The input of the run counts twice, because the input of the failure workflow contains it as well.
    """
    columns = ("input_size", "input_path", "output_size", "output_path", "variables_size")
    own = Run.objects.filter(pk=run_id).values_list(*columns).first()
    if own is None:
        return None, 0
    input_size, input_path, output_size, output_path, variables_size = own
    size = 2 * input_size * (not input_path) + output_size * (not output_path) + variables_size
    found = Attempt.objects.filter(run_id=run_id).aggregate(
        inputs=Sum("input_size", filter=Q(input_path="")),
        outputs=Sum("output_size", filter=Q(output_path="")),
        count=Count("pk"),
    )
    return size + (found["inputs"] or 0) + (found["outputs"] or 0), found["count"]


def simulated_document(
    run: snapshot.Run, attempts: Iterable[tuple[snapshot.Attempt, Task]], now: int
) -> dict[str, Any]:
    """Return a simulated run as it is at `now`, with these attempts in their order."""
    row = _run_row(run)
    documents = DefinitionDocuments(dict(run.definition.document))
    facts = RunFacts._make(getattr(row, name) for name in RUN_FACTS)
    rows = [_attempt_row(attempt, task, run) for attempt, task in attempts]
    branch_steps = dynamic_branches(rows)
    tasks = []
    for each in rows:
        steps = branch_steps[each.task_branch_head] if each.task_branch_head else documents.steps
        step = steps.get(each.task_ref) or unknown_step(each.task_ref, each.name)
        tasks.append(task_fields(each, facts, step, now))
    return workflow_fields(row, tasks, documents.workflow.document)


def _run_row(run: snapshot.Run) -> RunRow:
    others = {"name": run.definition.name, "version": run.definition.version, "resolved_definition_id": ""}
    others |= {"failed_refs": list(run.failed_refs), "failed_names": list(run.failed_names), "domains": {**run.domains}}
    others["fairness"] = run.fairness._asdict() if run.fairness.key else None
    others |= {part: _known_payload(getattr(run, part)) for part in ("input", "output", "variables")}
    return RunRow._make(others.get(name, getattr(run, name, "")) for name in RunRow._fields)


def _attempt_row(attempt: snapshot.Attempt, task: Task, run: snapshot.Run) -> Row:
    branch_head = (
        f"{task.branch_head.ref}@{'.'.join(map(str, task.branch_head.iteration_path))}" if task.branch_head else ""
    )
    policy = task.step.policy
    others: dict[str, Any] = {
        "name": task.step.name,
        "run_id": run.id,
        "rate_count": policy.rate_count,
        "rate_seconds": policy.rate_seconds,
        "task_ref": task.key.ref,
        "task_iteration_path": ".".join(map(str, task.key.iteration_path)),
        "task_type": task.step.type,
        "task_status": task.status,
        "task_attempt_id": task.attempt.id,
        "task_iteration": task.iteration,
        "task_branch_head": branch_head,
        "step_state": dict(task.step_state),
        "input_path": "",
        "output_path": "",
        "input": _known_payload(attempt.input),
        "output": _known_payload(attempt.output),
    }
    return Row._make(others[name] if name in others else getattr(attempt, name) for name in Row._fields)


def _known_payload(payload: JsonValue) -> Any:
    return {} if payload is UNKNOWN or payload is None else payload


MAX_BUNDLED_ATTEMPTS, MAX_BUNDLED_HISTORY = 20_000, 5_000
REPEATED_FIELDS = ("workflowTask", "taskDefinition")


def export_run(run: Run, now: int, by: str, server: str) -> dict[str, Any]:
    """Return a run with its definition, attempts and history in one document, for a report of a problem.

    It contains what the pages show: masked values are redacted.

    Raises:
        Conflict: when the run has more than MAX_BUNDLED_ATTEMPTS attempts.
    """
    if Attempt.objects.filter(run_id=run.pk).values("pk")[: MAX_BUNDLED_ATTEMPTS + 1].count() > MAX_BUNDLED_ATTEMPTS:
        raise Conflict(f"Run {run.pk} has more than {MAX_BUNDLED_ATTEMPTS} attempts, the maximum for a bundle.")
    document = run_document(run)
    for task in document["tasks"]:
        for name in REPEATED_FIELDS:
            task.pop(name, None)
    entries = HistoryEntry.objects.filter(run_id=run.pk).order_by("-revision")[:MAX_BUNDLED_HISTORY]
    fields = ("revision", "at", "by", "reason", "effects")
    return {
        "bundle": "run",
        "format": 1,
        "takenAt": now,
        "takenBy": by,
        "server": server,
        "labels": list(run.labels.order_by("name").values_list("name", flat=True)),
        "run": document,
        "history": [{name: getattr(entry, name) for name in fields} for entry in entries],
    }
