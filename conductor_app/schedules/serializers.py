"""Parsing and documents of schedules and their executions (api §3.13, §3.14).

The query language of the scheduler has clauses joined by AND that filter executions (api §6.4).
"""

import re
from collections.abc import Mapping
from typing import Any

from django.db.models import Q, QuerySet

from ..core.cron import MAX_JITTER_SECONDS
from ..core.document.fields import (
    ChoiceOf,
    DocumentPosition,
    FieldSpec,
    FieldTable,
    IntegerOf,
    ListOf,
    NamedTable,
    ObjectOf,
    coerce_workflow,
    fields_of_type,
    read_any,
    read_boolean,
    read_mapping,
    read_name,
    read_text,
    seconds,
    texts,
)
from ..core.errors import Invalid
from ..runs.api.serializers import START_REQUEST, parse_start_request
from ..web.api.documents import TAGS, parse_tags
from ..web.api.requests import errors_under, parse_integer, read_request
from .models import Schedule, ScheduleExecution

CLAUSE_PATTERN = re.compile(r"\s*(\w+)\s*(=|<|>|\bIN\b)\s*(.*?)\s*", re.DOTALL)
TEXT_COLUMNS = {"scheduleName": "schedule_name", "state": "state", "workflowName": "workflow_name", "executionId": "id"}
TIME_COLUMNS = {"scheduledTime": "slot_at", "executionTime": "executed_at"}
MAX_CLAUSES = 50


def find_executions(query: str) -> QuerySet[ScheduleExecution]:
    """Return the executions that match a query."""
    clauses = [clause for clause in query.split(" AND ") if clause.strip()]
    if len(clauses) > MAX_CLAUSES:
        raise Invalid(f"A query may have at most {MAX_CLAUSES} clauses.")
    found = ScheduleExecution.objects.all()
    for clause in clauses:
        found = found.filter(_parse_clause(clause.strip()))
    return found


def _parse_clause(clause: str) -> Q:
    match = CLAUSE_PATTERN.fullmatch(clause)
    if match and match[1] in TIME_COLUMNS:
        return _time_condition(TIME_COLUMNS[match[1]], match[2], match[3])
    if match and match[1] in TEXT_COLUMNS and match[2] in ("=", "IN"):
        return _text_condition(
            TEXT_COLUMNS[match[1]], [word for word in re.sub("[\"'()]", "", match[3]).split(",") if word]
        )
    # A text that is no clause is the name of a schedule.
    return Q(schedule_name=clause)


def _text_condition(column: str, words: list[str]) -> Q:
    words = [word.strip() for word in words]
    if column == "workflow_name" and len(words) == 1:
        return Q(workflow_name__icontains=words[0].replace("*", ""))
    return Q(**{f"{column}__in": words})


def _time_condition(column: str, operator: str, value: str) -> Q:
    if operator == "IN":
        raise Invalid("Times must be compared with <, > or =.")
    time = parse_integer(value.strip("\"'() "), "A moment in the query", 64)
    return Q(**{column + {"<": "__lt", ">": "__gt", "=": ""}[operator]: time})


def order_rows(rows: QuerySet, sort: str, columns: Mapping[str, str], default_order: tuple[str, ...]) -> QuerySet:
    """Sort rows by a list such as `scheduledTime:DESC,state:ASC`. Unknown columns are ignored."""
    requested = [each.strip().partition(":") for each in re.split("[,|]", sort)]
    known = [
        ("-" if direction.upper() == "DESC" else "") + columns[name]
        for name, _, direction in requested
        if name in columns and direction.upper() in ("ASC", "DESC")
    ]
    return rows.order_by(*(known or default_order), "pk")


SCHEDULE_PATH = "saveSchedule.workflowSchedule"
OVERLAP = ChoiceOf("ALLOW", "SKIP", "QUEUE", "TERMINATE_OTHER")
CRON_ENTRY = NamedTable(
    "CronSchedule", FieldSpec("cronExpression", read_text, ""), FieldSpec("zoneId", read_text, "UTC")
)
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
    *fields_of_type(read_text, "description", "createdBy", "updatedBy"),
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
    times = {"createTime": row.created_at, "updatedTime": row.updated_at, "nextRunTime": row.next_run_at}
    words = {"pausedReason": row.paused_reason, "createdBy": row.created_by, "updatedBy": row.updated_by}
    facts = {name: value for name, value in {**times, **words}.items() if value}
    return {**row.document, "name": row.name, "paused": row.is_paused, "tags": row.tags, **facts}


EXECUTION = NamedTable(
    "WorkflowScheduleExecution",
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


SCHEDULE_DOCUMENT = NamedTable(
    "WorkflowSchedule", *tuple(TAGS if field.name == "tags" else field for field in SCHEDULE_REPLY)
)
SCHEDULE_PAGE = NamedTable(
    "SearchResultWorkflowSchedule",
    FieldSpec("totalHits", IntegerOf(64)),
    FieldSpec("results", ListOf(ObjectOf(SCHEDULE_DOCUMENT))),
)
EXECUTION_PAGE = NamedTable(
    "SearchResultWorkflowScheduleExecution",
    FieldSpec("totalHits", IntegerOf(64)),
    FieldSpec("results", ListOf(ObjectOf(EXECUTION))),
)
BACKFILL = NamedTable("Backfill", FieldSpec("slots", IntegerOf()))
REPAIR = NamedTable("ScheduleRepair", FieldSpec("recordIds.size", IntegerOf()), FieldSpec("sampleIds", texts))
