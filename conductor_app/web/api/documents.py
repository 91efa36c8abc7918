"""Fields of documents that views of several slices share: runs, tasks, definitions, tags, pages and errors."""

from typing import Any

from ...core.document.fields import (
    AUDIT,
    STEP_FIELDS,
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
    ChoiceOf,
    DocumentPosition,
    FieldSpec,
    IntegerOf,
    ListOf,
    MapOf,
    NamedTable,
    ObjectOf,
    fields_of_type,
    read_boolean,
    read_document,
    read_mapping,
    read_text,
    texts,
)
from ...core.primitives import JsonValue


def read_tag_value(value: JsonValue, position: DocumentPosition) -> str:
    """Return the value of a tag. Numbers are read as texts; the tag of a limit is shown with a number."""
    return read_text(value, position)


TAG = NamedTable(
    "Tag", FieldSpec("key", read_text), FieldSpec("value", read_tag_value, ""), FieldSpec("type", read_text, "METADATA")
)
MAX_TAGS = 1_000


def parse_tags(value: JsonValue, position: DocumentPosition) -> list[dict[str, Any]]:
    """Return the tags without duplicates."""
    if not isinstance(value, list) or len(value) > MAX_TAGS or not all(isinstance(each, dict) for each in value):
        position.add_error(f"tags must be a list of at most {MAX_TAGS} objects with a key and a value")
        return []
    parsed = [_parse_tag(each, position.at(f"[{number}]")) for number, each in enumerate(value)]
    return list({(tag["key"], tag["value"]): tag for tag in parsed}.values())


def _parse_tag(value: dict[str, Any], position: DocumentPosition) -> dict[str, Any]:
    parsed = read_document(value, TAG, position)
    if not parsed.get("key"):
        position.at("key").add_missing("A tag needs a key")
    return {name: parsed.get(name, "") for name in ("key", "value", "type")}


TASK_STATUS = ChoiceOf(
    "IN_PROGRESS", "SCHEDULED", "COMPLETED", "COMPLETED_WITH_ERRORS", "SKIPPED", "FAILED", "TIMED_OUT",
    "FAILED_WITH_TERMINAL_ERROR", "CANCELED",
)  # fmt: skip
WORKFLOW_STATUS = ChoiceOf("RUNNING", "PAUSED", "COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED")


EXECUTION_METADATA = NamedTable(
    "ExecutionMetadata",
    *fields_of_type(read_mapping, "additionalContext", "additionalContextMap"),
    FieldSpec("empty", read_boolean),
)
TASK = NamedTable(
    "Task",
    FieldSpec("status", TASK_STATUS),
    *fields_of_type(read_text, "taskId", "taskType", "taskDefName", "referenceTaskName", "workflowInstanceId",
                    "workflowType",
            "correlationId", "retriedTaskId", "reasonForIncompletion", "workerId", "domain", "isolationGroupId",
            "executionNameSpace", "subWorkflowId", "externalInputPayloadStoragePath",
            "externalOutputPayloadStoragePath"),
    *fields_of_type(read_mapping, "inputData", "outputData"),
    *fields_of_type(IntegerOf(), "retryCount", "seq", "pollCount", "startDelayInSeconds", "iteration",
                    "workflowPriority",
            "rateLimitPerFrequency", "rateLimitFrequencyInSeconds"),
    *fields_of_type(IntegerOf(64), "scheduledTime", "startTime", "endTime", "updateTime", "firstStartTime",
                    "queueWaitTime",
            "responseTimeoutSeconds", "callbackAfterSeconds"),
    *fields_of_type(read_boolean, "retried", "executed", "subworkflowChanged", "callbackFromWorker", "loopOverTask"),
    FieldSpec("workflowTask", ObjectOf(STEP_FIELDS)),
    FieldSpec("taskDefinition", ObjectOf(TASK_DEFINITION)),
    FieldSpec("runtimeMetadata", MapOf(read_text)),
    FieldSpec("executionMetadata", ObjectOf(EXECUTION_METADATA)),
)  # fmt: skip

TAGS = FieldSpec("tags", ListOf(ObjectOf(TAG)))


WORKFLOW = NamedTable(
    "Workflow",
    *AUDIT,
    FieldSpec("status", WORKFLOW_STATUS),
    *fields_of_type(read_text, "workflowId", "workflowName", "parentWorkflowId", "parentWorkflowTaskId",
                    "correlationId",
            "reasonForIncompletion", "event", "idempotencyKey", "rateLimitKey", "fairnessKey", "traceparent",
            "externalInputPayloadStoragePath", "externalOutputPayloadStoragePath"),
    *fields_of_type(IntegerOf(), "workflowVersion", "priority"),
    *fields_of_type(IntegerOf(64), "startTime", "endTime", "lastRetriedTime"),
    *fields_of_type(read_mapping, "input", "output", "variables"),
    FieldSpec("taskToDomain", MapOf(read_text)),
    *fields_of_type(texts, "failedReferenceTaskNames", "failedTaskNames"),
    FieldSpec("workflowDefinition", ObjectOf(WORKFLOW_DEFINITION)),
    FieldSpec("tasks", ListOf(ObjectOf(TASK))),
    FieldSpec("history", ListOf(read_mapping)),
    FieldSpec("rateLimited", read_boolean),
)  # fmt: skip


BULK = NamedTable(
    "BulkResponse", FieldSpec("bulkErrorResults", MapOf(read_text)), FieldSpec("bulkSuccessfulResults", texts)
)
COMPLAINT = NamedTable("ValidationError", *fields_of_type(read_text, "path", "message", "invalidValue"))
ERROR = NamedTable(
    "ErrorResponse",
    FieldSpec("status", IntegerOf()),
    *fields_of_type(read_text, "message", "instance", "error"),
    FieldSpec("retryable", read_boolean),
    FieldSpec("validationErrors", ListOf(ObjectOf(COMPLAINT))),
)


LONG = IntegerOf(64)
