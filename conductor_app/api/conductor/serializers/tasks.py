"""TaskResult in, Task out (api §3.6, §3.7)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ....access.redaction import runtime_metadata, substitute_secrets
from ....core.document.checks.fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import (
    ChoiceOf,
    DocumentPosition,
    IntegerOf,
    ListOf,
    read_boolean,
    read_mapping,
    read_text,
    seconds,
)
from ....core.errors import Invalid
from ....core.expressions.json_walk import expression_texts as texts_in
from ....core.reports import Report
from ....insight.execution import wire_task_and_definition
from ....models import Attempt
from .requests import read_request

OUTCOMES = {
    "IN_PROGRESS": "IN_PROGRESS",
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD",
    "CANCELED": "CANCELED",
}
"""What a worker may say, and what we call it."""

LOG: FieldTable = (FieldSpec("log", read_text), FieldSpec("createdTime", IntegerOf(64), 0))
TASK_RESULT: FieldTable = (
    FieldSpec("workflowInstanceId", read_text, ""),
    FieldSpec("taskId", read_text, ""),
    FieldSpec("status", ChoiceOf(*OUTCOMES)),
    FieldSpec("outputData", read_mapping, dict),
    FieldSpec("reasonForIncompletion", read_text, ""),
    FieldSpec("callbackAfterSeconds", seconds, 0),
    FieldSpec("workerId", read_text, ""),
    FieldSpec("logs", ListOf(ObjectOf(LOG)), list),
    FieldSpec("extendLease", read_boolean, False),
    FieldSpec("externalOutputPayloadStoragePath", read_text, ""),
)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a worker says of one attempt; no report where it only asks for more time."""

    run_id: str
    attempt_id: str
    report: Report | None
    worker: str
    logs: tuple[tuple[str, int], ...] = ()
    output_path: str = ""

    @property
    def is_final(self) -> bool:
        return self.report is not None and self.report.outcome != "IN_PROGRESS"


def task_result(document: dict[str, Any]) -> TaskResult:
    """A TaskResult; raises ValidationFailed."""
    read = read_request(document, TASK_RESULT, "updateTask.taskResult", _check)
    report = None if read["extendLease"] else report_of(read)
    logs = tuple((line.get("log") or "", line["createdTime"]) for line in read["logs"] if line)
    path = read["externalOutputPayloadStoragePath"]
    return TaskResult(read["workflowInstanceId"], read["taskId"], report, read["workerId"], logs, path)


def report_of(read: dict[str, Any]) -> Report:
    """What a TaskResult says, once its fields have been read."""
    return Report(
        outcome=OUTCOMES[read["status"]],
        output=read["outputData"],
        reason=read["reasonForIncompletion"][:500],
        callback_seconds=read["callbackAfterSeconds"],
        worker=read["workerId"],
    )


def _check(read: dict[str, Any], place: DocumentPosition) -> None:
    if not read["workflowInstanceId"]:
        place.at("workflowInstanceId").add_missing("Workflow Id cannot be null or empty")
    if not read["taskId"]:
        place.at("taskId").add_missing("Task ID cannot be null or empty")
    if "status" not in read and not read["extendLease"]:
        place.at("status").add_missing("Task status cannot be null or empty")


def outcome(status: str) -> str:
    """What a status in an address means; raises Invalid."""
    if status not in OUTCOMES:
        raise Invalid(f"Invalid task status: {status[:100]}; it must be one of {', '.join(OUTCOMES)}")
    return OUTCOMES[status]


def handed_out(attempt: Attempt) -> dict[str, Any]:
    """A Task as the worker gets it: with its secrets put in, which are shown nowhere else."""
    task, definition = wire_task_and_definition(attempt)
    if any("workflow.secrets" in each for each in texts_in(attempt.input)):
        task["inputData"] = substitute_secrets(attempt.input, attempt.task.step_state.get("secrets", ()))
    if names := definition.get("runtimeMetadata"):
        task["runtimeMetadata"] = runtime_metadata(names)
    return task


def all_handed_out(attempts: Iterable[Attempt]) -> list[dict[str, Any]]:
    """Tasks as a worker gets them."""
    return [handed_out(attempt) for attempt in attempts]
