"""Helpers for tests of schedules: creation, and the outcomes of slots."""

from typing import Any

from conductor_app.runs.models import Run
from conductor_app.schedules import commands as schedules
from conductor_app.schedules.models import Schedule, ScheduleExecution
from conductor_app.schedules.serializers import parse_schedule
from tests.builders import definition, step
from tests.scenario import ACTOR, register_definitions

HOURLY = "0 0 * * * *"


def create_schedule(name: str = "hourly", cron: str = HOURLY, workflow: str = "order", **fields: Any) -> Schedule:
    """Create a schedule."""
    start = {"name": workflow, **fields.pop("start", {})}
    document = {"name": name, "cronExpression": cron, "startWorkflowRequest": start, **fields}
    return schedules.save_schedule(parse_schedule(document), ACTOR)


def register_order_workflow(**fields: Any) -> None:
    """Register the workflow that the schedules start: one worker step."""
    register_definitions({**definition(step("pay"), **fields), "name": "order"})


def started_hours(began: int) -> list[float]:
    """Return the slots of the started runs in hours since a moment, earliest first."""
    return sorted((run.input["_scheduledTime"] - began) / 3_600_000 for run in Run.objects.all())


def slot_outcomes(name: str = "hourly") -> list[tuple[str, str]]:
    """Return each slot's state and reason, earliest first."""
    rows = ScheduleExecution.objects.filter(schedule_name=name).order_by("slot_at", "id")
    return [(row.state, row.reason) for row in rows]
