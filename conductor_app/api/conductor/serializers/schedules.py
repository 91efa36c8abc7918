"""WorkflowSchedule in and out, WorkflowScheduleExecution out (api §3.13, §3.14)."""

from typing import Any

from ....core.language.checks import typed_workflow
from ....core.language.checks.fields import Field, Of, Table
from ....core.language.checks.values import (
    Choice,
    ListOf,
    Place,
    Whole,
    anything,
    flag,
    mapping,
    seconds,
    short_text,
    text,
)
from ....core.timetable import MOST_JITTER_SECONDS
from ....models import Schedule, ScheduleExecution
from .requests import complaints_at, read_request
from .tags import tags
from .workflows import START_REQUEST, start_request

PATH = "saveSchedule.workflowSchedule"
OVERLAP = Choice("ALLOW", "SKIP", "QUEUE", "TERMINATE_OTHER")
CRON_ENTRY: Table = (Field("cronExpression", text, ""), Field("zoneId", text, "UTC"))
SCHEDULE: Table = (
    Field("name", short_text),
    Field("cronExpression", text),
    Field("zoneId", text, "UTC"),
    Field("cronSchedules", ListOf(Of(CRON_ENTRY)), list),
    Field("runCatchupScheduleInstances", flag, False),
    Field("catchupWindowSeconds", seconds),
    Field("jitterSeconds", seconds),
    Field("overlapPolicy", OVERLAP, "ALLOW"),
    Field("paused", flag, False),
    Field("pausedReason", text),
    Field("startWorkflowRequest", mapping),
    Field("scheduleStartTime", Whole(64)),
    Field("scheduleEndTime", Whole(64)),
    Field("description", text),
    Field("createdBy", text),
    Field("updatedBy", text),
    Field("tags", anything),
)
SHOWN: Table = (
    *SCHEDULE,
    *(Field(name, Whole(64)) for name in ("createTime", "updatedTime", "nextRunTime")),
)


def schedule_document(document: dict[str, Any]) -> dict[str, Any]:
    read = read_request(document, SCHEDULE, PATH, _check)
    with complaints_at(f"{PATH}.startWorkflowRequest"):
        read["startWorkflowRequest"] = _request(read["startWorkflowRequest"])
    return read


def _check(read: dict[str, Any], place: Place) -> None:
    if not (read.get("name") or "").strip():
        place.at("name").miss("Schedule name cannot be null or empty")
    if "startWorkflowRequest" not in read:
        place.at("startWorkflowRequest").miss("startWorkflowRequest cannot be null")
    if not read["cronSchedules"] and not read.get("cronExpression"):
        place.at("cronExpression").miss("Invalid cron expression: cronExpression or cronSchedules is needed")
    if None in read["cronSchedules"]:
        place.at("cronSchedules").miss("cronSchedules must be a list of objects")
    if read.get("catchupWindowSeconds", 0) < 0:
        place.at("catchupWindowSeconds").complain("catchupWindowSeconds must not be negative")
    if not 0 <= read.get("jitterSeconds", 0) <= MOST_JITTER_SECONDS:
        place.at("jitterSeconds").complain(f"jitterSeconds must be between 0 and {MOST_JITTER_SECONDS}")
    start, end = read.get("scheduleStartTime"), read.get("scheduleEndTime")
    if start and end and start > end:
        place.at("scheduleEndTime").complain("scheduleEndTime must not be before scheduleStartTime", end)
    if "tags" in read:
        read["tags"] = tags(read["tags"], place.at("tags"))


def _request(given: dict[str, Any]) -> dict[str, Any]:
    """The request as it will be made at every slot, checked as one that is made now."""
    start_request(given)
    read = read_request(given, START_REQUEST, "", lambda read, place: None)
    if "workflowDef" in read:
        read["workflowDef"] = typed_workflow(read["workflowDef"])
    return read


def wire_schedule(row: Schedule) -> dict[str, Any]:
    """A WorkflowSchedule."""
    moments = {"createTime": row.created_at, "updatedTime": row.updated_at, "nextRunTime": row.next_run_at}
    words = {"pausedReason": row.paused_reason, "createdBy": row.created_by, "updatedBy": row.updated_by}
    facts = {name: value for name, value in {**moments, **words}.items() if value}
    return {**row.document, "name": row.name, "paused": row.is_paused, "tags": row.tags, **facts}


EXECUTION: Table = (
    *(
        Field(name, text)
        for name in (
            "executionId", "scheduleName", "workflowName", "workflowId", "reason", "stackTrace", "state", "zoneId",
        )
    ),
    Field("scheduledTime", Whole(64)),
    Field("executionTime", Whole(64)),
    Field("startWorkflowRequest", Of(START_REQUEST)),
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
