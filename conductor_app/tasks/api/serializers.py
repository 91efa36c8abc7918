"""Parsing of a TaskResult, and documents of a Task (api §3.6, §3.7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.http import HttpResponse

from ...core.decide import Report
from ...core.document.fields import (
    ChoiceOf,
    DocumentPosition,
    FieldSpec,
    IntegerOf,
    ListOf,
    NamedTable,
    ObjectOf,
    OrNull,
    read_any,
    read_boolean,
    read_mapping,
    read_number,
    read_text,
    seconds,
)
from ...core.errors import MAX_ATTEMPT_REASON_LENGTH, Invalid, shorten_reason
from ...core.trace_context import HEADER
from ...runs.documents.tasks import Row, column_values, dynamic_branches, run_facts_of, step_of, task_fields
from ...utils import clock
from ...web.api.documents import LONG, fields_of_type
from ...web.api.operations import Json, NoContent
from ...web.api.requests import read_request
from ..secrets import secrets_for_worker
from ..store import ClaimedAttempt

OUTCOME_BY_STATUS = {
    "IN_PROGRESS": "IN_PROGRESS",
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD",
    "CANCELED": "CANCELED",
}
"""The outcome of a report by Conductor's task status."""

LOG = NamedTable("TaskExecLogLine", FieldSpec("log", read_text), FieldSpec("createdTime", IntegerOf(64), 0))
TASK_RESULT = NamedTable(
    "TaskResult",
    FieldSpec("workflowInstanceId", read_text, ""),
    FieldSpec("taskId", read_text, ""),
    FieldSpec("status", ChoiceOf(*OUTCOME_BY_STATUS)),
    FieldSpec("outputData", read_mapping, dict),
    FieldSpec("reasonForIncompletion", read_text, ""),
    FieldSpec("callbackAfterSeconds", seconds, 0),
    FieldSpec("workerId", read_text, ""),
    FieldSpec("logs", ListOf(ObjectOf(LOG)), list),
    FieldSpec("extendLease", read_boolean, False),
    FieldSpec("supportsCancellation", read_boolean, False),
    FieldSpec("externalOutputPayloadStoragePath", read_text, ""),
)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Result that a worker sends for an attempt. `report` is None if the worker only extends its lease.

    `supports_cancellation`: the reply to a late report is the task as it is, so that the worker can stop.
    """

    run_id: str
    attempt_id: str
    report: Report | None
    worker: str
    logs: tuple[tuple[str, int], ...] = ()
    output_path: str = ""
    supports_cancellation: bool = False

    @property
    def is_final(self) -> bool:
        return self.report is not None and self.report.outcome != "IN_PROGRESS"


def parse_task_result(document: dict[str, Any]) -> TaskResult:
    """Return a TaskResult."""
    fields = read_request(document, TASK_RESULT, "updateTask.taskResult", _check_task_result)
    report = None if fields["extendLease"] else build_report(fields)
    logs = tuple((line.get("log") or "", line["createdTime"]) for line in fields["logs"] if line)
    path = fields["externalOutputPayloadStoragePath"]
    return TaskResult(
        fields["workflowInstanceId"],
        fields["taskId"],
        report,
        fields["workerId"],
        logs,
        path,
        fields["supportsCancellation"],
    )


def build_report(fields: dict[str, Any]) -> Report:
    """Return the report of a TaskResult's parsed fields."""
    return Report(
        outcome=OUTCOME_BY_STATUS[fields["status"]],
        output=fields["outputData"],
        reason=shorten_reason(fields["reasonForIncompletion"], MAX_ATTEMPT_REASON_LENGTH),
        callback_seconds=fields["callbackAfterSeconds"],
        worker=fields["workerId"],
    )


def _check_task_result(fields: dict[str, Any], position: DocumentPosition) -> None:
    if not fields["workflowInstanceId"]:
        position.at("workflowInstanceId").add_missing("Workflow Id cannot be null or empty")
    if not fields["taskId"]:
        position.at("taskId").add_missing("Task ID cannot be null or empty")
    if "status" not in fields and not fields["extendLease"]:
        position.at("status").add_missing("Task status cannot be null or empty")


def parse_outcome(status: str) -> str:
    """Return the outcome for a status in a path."""
    if status not in OUTCOME_BY_STATUS:
        raise Invalid(f"Invalid task status: {status[:100]}; it must be one of {', '.join(OUTCOME_BY_STATUS)}")
    return OUTCOME_BY_STATUS[status]


AWAITED_STATUSES = (
    *("SCHEDULED", "IN_PROGRESS", "CANCELED", "FAILED", "FAILED_WITH_TERMINAL_ERROR", "COMPLETED"),
    *("COMPLETED_WITH_ERRORS", "TIMED_OUT", "SKIPPED"),
)
"""The statuses of a task that a request can wait for."""


def parse_statuses(text: str) -> frozenset[str]:
    """Return the statuses in a comma-separated list."""
    statuses = frozenset(status.strip().upper() for status in text.split(",") if status.strip())
    if unknown := statuses - set(AWAITED_STATUSES):
        named = ", ".join(sorted(unknown))[:100]
        raise Invalid(f"Invalid task status: {named}; it must be one of {', '.join(AWAITED_STATUSES)}")
    return statuses


def claimed_task_document(attempt: ClaimedAttempt) -> dict[str, Any]:
    """Return a Task for its worker, with the values of its secrets. No other document has them."""
    task, definition = wire_claimed_task(attempt)
    requested = definition.get("runtimeMetadata")
    secrets = secrets_for_worker(attempt, requested or ())
    if secrets.input is not None:
        task["inputData"] = secrets.input
    if requested:
        task["runtimeMetadata"] = secrets.runtime_metadata
    if traceparent := attempt.traceparent:
        task["runtimeMetadata"] = {HEADER: traceparent, **task.get("runtimeMetadata", {})}
    return task


def first_task_reply(attempts: Sequence[ClaimedAttempt]) -> HttpResponse:
    return Json(claimed_task_document(attempts[0])) if attempts else NoContent()


def claimed_task_documents(attempts: Iterable[ClaimedAttempt]) -> list[dict[str, Any]]:
    """Return claimed attempts as Tasks for their worker."""
    return [claimed_task_document(attempt) for attempt in attempts]


POLL_DATA = NamedTable(
    "PollData", *fields_of_type(read_text, "queueName", "domain", "workerId"), FieldSpec("lastPollTime", IntegerOf(64))
)
SENT_LOG = NamedTable("TaskExecLog", *LOG, FieldSpec("taskId", read_text))
INPUT_ORIGIN = NamedTable(
    "InputOrigin",
    *fields_of_type(read_text, "parameter", "expression", "source", "taskReferenceName", "hint"),
    FieldSpec("isFound", read_boolean),
    FieldSpec("value", read_any),
)
PROVENANCE = NamedTable(
    "InputProvenance", FieldSpec("taskId", read_text), FieldSpec("inputs", ListOf(ObjectOf(INPUT_ORIGIN)))
)
USED_LIMIT = NamedTable("UsedLimit", *fields_of_type(LONG, "used", "allowed"))
QUEUE_STATE = NamedTable(
    "QueueState",
    FieldSpec("name", read_text),
    *fields_of_type(LONG, "pending", "delayed", "inProgress", "pollers", "oldestPendingSince", "lastPollTime"),
    *fields_of_type(read_boolean, "pendingIsLowerBound", "isPolled", "isNeglected"),
    FieldSpec("limit", ObjectOf(USED_LIMIT)),
)
QUEUE_STATES = NamedTable("QueueStates", FieldSpec("queues", ListOf(ObjectOf(QUEUE_STATE))))
QUEUE_HOLD = NamedTable("QueueHold", *fields_of_type(read_text, "by", "reason"), FieldSpec("since", LONG))
QUEUE_LIMIT = NamedTable(
    "QueueLimit", FieldSpec("sentence", read_text), *fields_of_type(LONG, "used", "allowed", "reopensAt")
)
TASK_IN_QUEUE = fields_of_type(read_text, "taskId", "taskReferenceName", "workflowId", "workflowName")
PENDING_TASK = NamedTable(
    "PendingTask",
    *TASK_IN_QUEUE,
    *fields_of_type(LONG, "position", "pendingSince", "estimatedMs"),
    FieldSpec("priority", IntegerOf()),
)
CLAIMED_TASK = NamedTable(
    "ClaimedTask", *TASK_IN_QUEUE, FieldSpec("workerId", read_text), FieldSpec("claimedAt", OrNull(LONG))
)
QUEUE_POLLER = NamedTable(
    "QueuePoller",
    FieldSpec("workerId", read_text),
    FieldSpec("lastPollTime", LONG),
    FieldSpec("isPolling", read_boolean),
)
QUEUE_DETAIL = NamedTable(
    "QueueDetail",
    FieldSpec("name", read_text),
    *fields_of_type(LONG, "pending", "delayed", "inProgress", "drainsInMs"),
    FieldSpec("ratePerSecond", read_number),
    FieldSpec("paused", ObjectOf(QUEUE_HOLD)),
    FieldSpec("limits", ListOf(ObjectOf(QUEUE_LIMIT))),
    FieldSpec("pendingTasks", ListOf(ObjectOf(PENDING_TASK))),
    FieldSpec("tasksInProgress", ListOf(ObjectOf(CLAIMED_TASK))),
    FieldSpec("pollers", ListOf(ObjectOf(QUEUE_POLLER))),
)


def claimed_row(attempt: ClaimedAttempt) -> Row:
    """Return the row of a claimed attempt. Its payloads are serialized JSON."""
    input, output = orjson.Fragment(attempt.input_text), orjson.Fragment(attempt.output_text)
    return Row._make((*column_values(attempt), input, output, attempt.task.step_state_text))


def wire_claimed_task(attempt: ClaimedAttempt) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a claimed attempt for an API reply, and the task definition of its step."""
    row, run = claimed_row(attempt), run_facts_of(attempt.run)
    step = step_of(row, run, dynamic_branches([row]))
    document = task_fields(row, run, step, clock.now(), as_json=True)
    return document, step.task_definition.document or {}
