"""Attempts as Conductor's Task documents (api §3.6)."""

from collections.abc import Sequence
from typing import Any

import orjson

from .... import clock
from ....core.decision_context import conductor_status, conductor_task_type
from ....core.masking import redact_text
from ....core.reasons import CONDUCTOR_LENGTH
from ....core.retry_backoff import MAX_SECONDS
from ....core.states import COMPLETED, COMPLETED_WITH_ERRORS, SKIPPED
from ....core.step_structure import FORK
from ....core.step_types.decision import DecisionStep
from ....core.step_types.join import Join
from ....core.step_types.sub_workflow import SubWorkflow
from ....core.step_types.switch import Switch
from ....core.step_types.wait import Wait
from ....models import Attempt
from ....models.claimed_attempts import ClaimedAttempt
from ....models.fields import loads
from . import definition_documents
from .attempt_rows import Row, RunFacts, claimed_row, load_rows, run_facts, run_facts_of, to_row
from .branches import dynamic_branches, dynamic_branches_by_run

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


def wire_claimed_task(attempt: ClaimedAttempt) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a claimed attempt for an API reply, and the task definition of its step."""
    row, run = claimed_row(attempt), run_facts_of(attempt.run)
    step = step_of(row, run, dynamic_branches([row]))
    document = task_fields(row, run, step, clock.now(), as_json=True)
    return document, step.task_definition.document or {}


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


def wire_row(row: Row, run: RunFacts, step: definition_documents.StepDocument, now: int) -> dict[str, Any]:
    """Return a row for an API reply. Payloads are sent as the stored JSON text, without parsing."""
    document = task_fields(row, run, step, now, as_json=True)
    input, output = redact_text(row.input), redact_text(row.output)
    document["inputData"], document["outputData"] = orjson.Fragment(input), orjson.Fragment(output)
    return document


def plain_row(row: Row, run: RunFacts, step: definition_documents.StepDocument, now: int) -> dict[str, Any]:
    """Return a row with JSON texts as a document of plain values."""
    return task_fields(row._replace(input=loads(row.input), output=loads(row.output)), run, step, now)


def step_of(
    row: Row, run: RunFacts, branch_steps: dict[str, definition_documents.Steps]
) -> definition_documents.StepDocument:
    """Return the step of an attempt."""
    steps = (
        branch_steps[row.task_branch_head]
        if row.task_branch_head
        else definition_documents.definition_documents(run.resolved_definition_id).steps
    )
    step = steps.get(row.task_ref)
    return step.named(row.name) if step else definition_documents.unknown_step(row.task_ref, row.name)


def task_fields(
    row: Row, run: RunFacts, step: definition_documents.StepDocument, now: int, *, as_json: bool = False
) -> dict[str, Any]:
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
