"""WorkflowSchedule in and out, WorkflowScheduleExecution out (api §3.13, §3.14)."""

from typing import Any

from ....core.document.checks import coerce_workflow
from ....core.document.checks.fields import FieldSpec, FieldTable, ObjectOf
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
from ....core.timetable import MOST_JITTER_SECONDS
from ....models import Schedule, ScheduleExecution
from .requests import errors_under, read_request
from .tags import tags
from .workflows import START_REQUEST, start_request

PATH = "saveSchedule.workflowSchedule"
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
SHOWN: FieldTable = (
    *SCHEDULE,
    *(FieldSpec(name, IntegerOf(64)) for name in ("createTime", "updatedTime", "nextRunTime")),
)


def schedule_document(document: dict[str, Any]) -> dict[str, Any]:
    read = read_request(document, SCHEDULE, PATH, _check)
    with errors_under(f"{PATH}.startWorkflowRequest"):
        read["startWorkflowRequest"] = _request(read["startWorkflowRequest"])
    return read


def _check(read: dict[str, Any], place: DocumentPosition) -> None:
    if not (read.get("name") or "").strip():
        place.at("name").add_missing("Schedule name cannot be null or empty")
    if "startWorkflowRequest" not in read:
        place.at("startWorkflowRequest").add_missing("startWorkflowRequest cannot be null")
    if not read["cronSchedules"] and not read.get("cronExpression"):
        place.at("cronExpression").add_missing("Invalid cron expression: cronExpression or cronSchedules is needed")
    if None in read["cronSchedules"]:
        place.at("cronSchedules").add_missing("cronSchedules must be a list of objects")
    if read.get("catchupWindowSeconds", 0) < 0:
        place.at("catchupWindowSeconds").add_error("catchupWindowSeconds must not be negative")
    if not 0 <= read.get("jitterSeconds", 0) <= MOST_JITTER_SECONDS:
        place.at("jitterSeconds").add_error(f"jitterSeconds must be between 0 and {MOST_JITTER_SECONDS}")
    start, end = read.get("scheduleStartTime"), read.get("scheduleEndTime")
    if start and end and start > end:
        place.at("scheduleEndTime").add_error("scheduleEndTime must not be before scheduleStartTime", end)
    if "tags" in read:
        read["tags"] = tags(read["tags"], place.at("tags"))


def _request(given: dict[str, Any]) -> dict[str, Any]:
    """The request as it will be made at every slot, checked as one that is made now."""
    start_request(given)
    read = read_request(given, START_REQUEST, "", lambda read, place: None)
    if "workflowDef" in read:
        read["workflowDef"] = coerce_workflow(read["workflowDef"])
    return read


def wire_schedule(row: Schedule) -> dict[str, Any]:
    """A WorkflowSchedule."""
    moments = {"createTime": row.created_at, "updatedTime": row.updated_at, "nextRunTime": row.next_run_at}
    words = {"pausedReason": row.paused_reason, "createdBy": row.created_by, "updatedBy": row.updated_by}
    facts = {name: value for name, value in {**moments, **words}.items() if value}
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
    """A WorkflowScheduleExecution."""
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
