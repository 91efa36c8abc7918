"""Parsing and documents of schedules and their executions (api §3.13, §3.14)."""

from typing import Any

from ....core.document.checks import coerce_workflow
from ....core.document.checks.document_fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import (
    ChoiceOf,
    DocumentPosition,
    IntegerOf,
    ListOf,
    read_any,
    read_boolean,
    read_mapping,
    read_name,
    read_text,
    seconds,
)
from ....core.timetable import MAX_JITTER_SECONDS
from ....models import Schedule, ScheduleExecution
from ..definitions.tag_serializers import parse_tags
from ..request_fields import errors_under, read_request
from ..runs.workflow_serializers import START_REQUEST, parse_start_request

SCHEDULE_PATH = "saveSchedule.workflowSchedule"
OVERLAP = ChoiceOf("ALLOW", "SKIP", "QUEUE", "TERMINATE_OTHER")
CRON_ENTRY: FieldTable = (FieldSpec("cronExpression", read_text, ""), FieldSpec("zoneId", read_text, "UTC"))
SCHEDULE: FieldTable = (
    FieldSpec("name", read_name),
    FieldSpec("cronExpression", read_text),
    FieldSpec("zoneId", read_text, "UTC"),
    FieldSpec("cronSchedules", ListOf(ObjectOf(CRON_ENTRY)), list),
    FieldSpec("runCatchupScheduleInstances", read_boolean, False),
    FieldSpec("catchupWindowSeconds", seconds),
    FieldSpec("jitterSeconds", seconds),
    FieldSpec("overlapPolicy", OVERLAP, "ALLOW"),
    FieldSpec("paused", read_boolean, False),
    FieldSpec("pausedReason", read_text),
    FieldSpec("startWorkflowRequest", read_mapping),
    FieldSpec("scheduleStartTime", IntegerOf(64)),
    FieldSpec("scheduleEndTime", IntegerOf(64)),
    FieldSpec("description", read_text),
    FieldSpec("createdBy", read_text),
    FieldSpec("updatedBy", read_text),
    FieldSpec("tags", read_any),
)
SCHEDULE_REPLY: FieldTable = (
    *SCHEDULE,
    *(FieldSpec(name, IntegerOf(64)) for name in ("createTime", "updatedTime", "nextRunTime")),
)
SENT_SCHEDULE: FieldTable = tuple(
    FieldSpec(spec.name, ObjectOf(START_REQUEST)) if spec.name == "startWorkflowRequest" else spec
    for spec in SCHEDULE_REPLY
)
"""The fields of a schedule that a client may send, those of replies included."""


def parse_schedule(document: dict[str, Any]) -> dict[str, Any]:
    fields = read_request(document, SCHEDULE, SCHEDULE_PATH, _check_schedule)
    with errors_under(f"{SCHEDULE_PATH}.startWorkflowRequest"):
        fields["startWorkflowRequest"] = _parse_start_request(fields["startWorkflowRequest"])
    return fields


def _check_schedule(fields: dict[str, Any], position: DocumentPosition) -> None:
    if not (fields.get("name") or "").strip():
        position.at("name").add_missing("Schedule name cannot be null or empty")
    if "startWorkflowRequest" not in fields:
        position.at("startWorkflowRequest").add_missing("startWorkflowRequest cannot be null")
    if not fields["cronSchedules"] and not fields.get("cronExpression"):
        position.at("cronExpression").add_missing("Invalid cron expression: cronExpression or cronSchedules is needed")
    if None in fields["cronSchedules"]:
        position.at("cronSchedules").add_missing("cronSchedules must be a list of objects")
    if fields.get("catchupWindowSeconds", 0) < 0:
        position.at("catchupWindowSeconds").add_error("catchupWindowSeconds must not be negative")
    if not 0 <= fields.get("jitterSeconds", 0) <= MAX_JITTER_SECONDS:
        position.at("jitterSeconds").add_error(f"jitterSeconds must be between 0 and {MAX_JITTER_SECONDS}")
    start, end = fields.get("scheduleStartTime"), fields.get("scheduleEndTime")
    if start and end and start > end:
        position.at("scheduleEndTime").add_error("scheduleEndTime must not be before scheduleStartTime", end)
    if "tags" in fields:
        fields["tags"] = parse_tags(fields["tags"], position.at("tags"))


def _parse_start_request(start_document: dict[str, Any]) -> dict[str, Any]:
    """Return the start request that each slot makes, checked as if it were made now."""
    parse_start_request(start_document)
    fields = read_request(start_document, START_REQUEST, "")
    if "workflowDef" in fields:
        fields["workflowDef"] = coerce_workflow(fields["workflowDef"])
    return fields


def wire_schedule(row: Schedule) -> dict[str, Any]:
    """Return a schedule as a WorkflowSchedule."""
    times = {"createTime": row.created_at, "updatedTime": row.updated_at, "nextRunTime": row.next_run_at}
    words = {"pausedReason": row.paused_reason, "createdBy": row.created_by, "updatedBy": row.updated_by}
    facts = {name: value for name, value in {**times, **words}.items() if value}
    return {**row.document, "name": row.name, "paused": row.is_paused, "tags": row.tags, **facts}


EXECUTION: FieldTable = (
    *(
        FieldSpec(name, read_text)
        for name in (
            "executionId", "scheduleName", "workflowName", "workflowId", "reason", "stackTrace", "state", "zoneId",
        )
    ),
    FieldSpec("scheduledTime", IntegerOf(64)),
    FieldSpec("executionTime", IntegerOf(64)),
    FieldSpec("startWorkflowRequest", ObjectOf(START_REQUEST)),
)  # fmt: skip


def wire_execution(row: ScheduleExecution) -> dict[str, Any]:
    """Return a schedule execution as a WorkflowScheduleExecution."""
    facts = {"workflowId": row.run_id, "reason": row.reason, "stackTrace": row.trace}
    return {
        "executionId": row.id,
        "scheduleName": row.schedule_name,
        "scheduledTime": row.slot_at,
        "executionTime": row.executed_at,
        "workflowName": row.workflow_name,
        "startWorkflowRequest": row.request,
        "state": row.state,
        "zoneId": row.zone_id,
        **{name: value for name, value in facts.items() if value},
    }
