"""Runs as Conductor's Workflow documents (api §3.5)."""

from collections.abc import Iterable
from contextlib import nullcontext
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import orjson
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from ....core.masking import redact_text
from ....models import Run
from ....models.snapshots import read_snapshot
from ...row_types import row_type
from . import definition_documents
from .attempt_rows import attempts_of, load_rows, run_facts_of
from .lookups import PAYLOADS, raise_run_not_found
from .task_documents import task_documents

RUN_COLUMNS = (
    "id", "name", "version", "resolved_definition_id", "status", "reason", "correlation_id", "priority",
    "created_at", "updated_at", "ended_at", "last_retried_at", "parent_id", "parent_attempt_id",
    "failed_refs", "failed_names", "domains", "limit_key", "is_held", "started_by", "event", "idempotency_key",
    "input_path", "output_path",
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
    return workflow_fields(
        row, tasks, definition_documents.definition_documents(row.resolved_definition_id).workflow.document
    )


def run_document_without_payloads(run_id: str, *, with_tasks: bool = True) -> dict[str, Any]:
    """Return a run as a document whose inputs, outputs and variables are empty. They are not read."""
    run = Run.objects.defer(*PAYLOADS).get(pk=run_id)
    row = RunRow._make((*attrgetter(*RUN_COLUMNS)(run), *({} for _ in PAYLOADS)))
    rows = load_rows(attempts_of([run_id]), with_payloads=False) if with_tasks else []
    tasks = task_documents(rows, run_facts_of(run), is_wire=False) if with_tasks else []
    return workflow_fields(
        row, tasks, definition_documents.definition_documents(row.resolved_definition_id).workflow.document
    )


def wire_run(run_id: str, with_tasks: bool = True) -> dict[str, Any]:
    """Return a run for an API reply.

    Raises:
        NotFound: when no run has this id.
    """
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
            _raw_payloads(row),
            tasks.get(row.id, []),
            definition_documents.definition_documents(row.resolved_definition_id).workflow.json,
        )
        for row in rows
    ]


def _wire_tasks(runs: Iterable[RunRow]) -> dict[str, list[dict[str, Any]]]:
    by_id = {run.id: run for run in runs}
    groups = groupby(load_rows(attempts_of(by_id)), key=lambda row: row.run_id)
    return {id: task_documents(list(rows), run_facts_of(by_id[id]), is_wire=True) for id, rows in groups}


def _raw_payloads(row: RunRow) -> RunRow:
    return row._replace(**{name: orjson.Fragment(redact_text(getattr(row, name))) for name in PAYLOADS})


def workflow_fields(row: RunRow, tasks: list[dict[str, Any]], definition: Any) -> dict[str, Any]:
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
        ("externalInputPayloadStoragePath", row.input_path),
        ("externalOutputPayloadStoragePath", row.output_path),
    )
