"""Helpers for tests of schedules: creation, and the outcomes of slots."""

from typing import Any

from conductor_app.api.conductor.schedules.schedule_serializers import parse_schedule
from conductor_app.engine import schedules
from conductor_app.models import Run, Schedule, ScheduleExecution
from tests.builders import definition, step
from tests.scenario import ACTOR, register_definitions

HOURLY = "0 0 * * * *"


def create_schedule(name: str = "hourly", cron: str = HOURLY, workflow: str = "order", **fields: Any) -> Schedule:
    """A schedule is kept."""
    start = {"name": workflow, **fields.pop("start", {})}
    document = {"name": name, "cronExpression": cron, "startWorkflowRequest": start, **fields}
    return schedules.save_schedule(parse_schedule(document), ACTOR)


def register_order_workflow(**fields: Any) -> None:
    """What the schedules start: one step for a worker."""
    register_definitions({**definition(step("pay"), **fields), "name": "order"})


def started_hours(began: int) -> list[float]:
    """The slots of the runs that were started, in hours since a moment, the earliest first."""
    return sorted((run.input["_scheduledTime"] - began) / 3_600_000 for run in Run.objects.all())


def slot_outcomes(name: str = "hourly") -> list[tuple[str, str]]:
    """The state of each slot and its reason, the earliest first."""
    rows = ScheduleExecution.objects.filter(schedule_name=name).order_by("slot_at", "id")
    return [(row.state, row.reason) for row in rows]
