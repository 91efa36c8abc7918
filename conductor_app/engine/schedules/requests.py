"""Execution records and start requests for the slots of schedules."""

from collections.abc import Mapping
from typing import Any

from ...access.masking import decrypt_masked
from ...core.ids import derived_id
from ...core.timetable import ScheduleSlot, Timetable
from ...models import Schedule, ScheduleExecution
from ..runs.run_commands import StartRequest
from .schedule_rows import stored_document


def new_execution(schedule: Schedule, table: Timetable, slot: ScheduleSlot, now: int) -> ScheduleExecution:
    """Return an unsaved execution record of a slot. The same slot always has the same id."""
    entry = table.entries[slot.entry]
    id = derived_id(slot.at, schedule.pk, slot.at, slot.entry)
    return execution_record(schedule, id, slot.at, now, entry.expression, entry.zone_id)


def execution_record(
    schedule: Schedule, id: str, slot_at: int, now: int, expression: str, zone_id: str
) -> ScheduleExecution:
    """Return an unsaved execution record."""
    return ScheduleExecution(
        id=id,
        schedule_name=schedule.name,
        workflow_name=schedule.workflow_name,
        slot_at=slot_at,
        created_at=now,
        executed_at=now,
        cron_expression=expression,
        zone_id=zone_id,
    )


def start_request(schedule: Schedule, execution: ScheduleExecution) -> StartRequest:
    """Return the start request for the run of a slot, and store it in the execution record."""
    request: Mapping[str, Any] = stored_document(schedule)["startWorkflowRequest"]
    given = {**(request.get("input") or {}), **_slot_input(schedule, execution)}
    execution.request = {**request, "input": given}
    return StartRequest(
        name=request["name"],
        version=request.get("version"),
        input=decrypt_masked(given),
        correlation_id=request.get("correlationId") or "",
        priority=request.get("priority") or 0,
        domains=request.get("taskToDomain") or {},
        document=request.get("workflowDef"),
        idempotency_key=request.get("idempotencyKey") or None,
        idempotency_strategy=request.get("idempotencyStrategy") or "FAIL",
        labels=tuple(request.get("labels") or ()),
        started_by=str(request.get("createdBy") or ""),
        schedule=schedule.name,
    )


def _slot_input(schedule: Schedule, execution: ScheduleExecution) -> dict[str, Any]:
    """Return the input values that describe the slot of a scheduled run (execution §10.7)."""
    return {
        "_startedByScheduler": schedule.name,
        "_scheduledTime": execution.slot_at,
        "_executedTime": execution.executed_at,
        "_executionId": execution.id,
        "_schedulerCron": execution.cron_expression,
    }
