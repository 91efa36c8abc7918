"""WorkflowSummary and TaskSummary (api §3.10, §3.11). Times are texts here, and payloads are in Java's format."""

from datetime import UTC, datetime
from typing import Any

from ....core.decision_context import conductor_status, conductor_task_type
from ....core.expressions.java_text import java_text
from ....core.masking import redact_text
from ....core.reasons import CONDUCTOR_LENGTH
from ....insight.runs.execution.task_documents import NAMED_BY_TYPE
from ....insight.runs.search.result_rows import AttemptLine, RunLine
from ....models.fields import loads


def workflow_summary_document(run: RunLine) -> dict[str, Any]:
    """Return a run as a WorkflowSummary."""
    summary = {
        "workflowType": run.name,
        "version": run.version,
        "workflowId": run.id,
        "startTime": format_time(run.created_at),
        "updateTime": format_time(run.updated_at),
        "status": run.status,
        "input": format_payload(run.input),
        "output": format_payload(run.output),
        "executionTime": max(run.ended_at - run.created_at, 0) if run.ended_at else 0,
        "failedReferenceTaskNames": ",".join(run.failed_refs),
        "failedTaskNames": run.failed_names,
        "priority": run.priority,
        "taskToDomain": run.domains,
        "parentWorkflowId": run.parent_id,
        "classifier": "workflow",
        "inputSize": run.input_size,
        "outputSize": run.output_size,
    }
    return summary | drop_empty(
        endTime=format_time(run.ended_at) if run.ended_at else None,
        correlationId=run.correlation_id,
        reasonForIncompletion=run.reason,
        event=run.event,
        createdBy=run.started_by,
        idempotencyKey=run.idempotency_key,
        externalInputPayloadStoragePath=run.input_path,
        externalOutputPayloadStoragePath=run.output_path,
    )


def task_summary_document(attempt: AttemptLine) -> dict[str, Any]:
    """Return an attempt as a TaskSummary."""
    is_newest = attempt.id == attempt.task_attempt_id
    kind = conductor_task_type(attempt.task_type, attempt.name)
    summary = {
        "workflowId": attempt.run_id,
        "workflowType": attempt.run_name,
        "scheduledTime": format_time(attempt.scheduled_at),
        "startTime": format_time(attempt.started_at),
        "updateTime": format_time(attempt.updated_at),
        "endTime": format_time(attempt.ended_at),
        "status": conductor_status(attempt.status, attempt.task_status if is_newest else ""),
        "executionTime": duration_between(attempt.started_at, attempt.ended_at),
        "queueWaitTime": duration_between(attempt.scheduled_at, attempt.started_at),
        "taskDefName": kind if kind in NAMED_BY_TYPE else attempt.name or kind,
        "taskType": kind,
        "input": format_payload(attempt.input),
        "output": format_payload(attempt.output),
        "taskId": attempt.id,
        "workflowPriority": attempt.run_priority,
    }
    return summary | drop_empty(
        correlationId=attempt.run_correlation_id,
        reasonForIncompletion=attempt.reason[:CONDUCTOR_LENGTH],
        domain=attempt.domain,
        externalInputPayloadStoragePath=attempt.input_path,
        externalOutputPayloadStoragePath=attempt.output_path,
    )


def drop_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}


def format_time(time_ms: int | None) -> str:
    """Return a time in the format of the summaries; the epoch if there is none yet."""
    at = datetime.fromtimestamp((time_ms or 0) / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{(time_ms or 0) % 1000:03d}Z"


def duration_between(start: int | None, end: int | None) -> int:
    return max(end - start, 0) if start and end else 0


def format_payload(excerpt: str) -> str:
    """Return a payload in the original's format, `{total=5}`. For a long one, return the start of its JSON."""
    return f"{redact_text(excerpt[1:])}…" if excerpt.startswith("…") else java_text(loads(excerpt))
