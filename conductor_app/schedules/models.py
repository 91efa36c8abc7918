"""Schedules, their executed slots, and the state of the scheduler."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from ..db.fields import Authored, DocumentField, IdField, MomentField, UserKeyField
from ..db.statements import fetch

WAITING, EXECUTED, FAILED = "POLLED", "EXECUTED", "FAILED"
"""The states of a slot: its run has not started yet, has started, or could not start."""
SKIPPED, SKIP_REASON = "SKIPPED", "Skipped: "
"""What pages show instead of FAILED for a slot that was left out, and the start of its reason."""


class Schedule(Authored):
    """A schedule. `document` is stored as received; the columns hold the time of the next slot."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_SCHEDULE": "name"}

    # Set by queries and commands that load more than the row.
    last_state: str
    last_reason: str
    last_slot_at: int | None
    strip: Any

    name = models.CharField(max_length=255, unique=True)
    document = DocumentField(default=dict)
    tags = DocumentField(default=list)
    owner_id = UserKeyField(default=0, db_default=0)
    workflow_name = models.CharField("definition", max_length=255)
    overlap = models.CharField(max_length=16, default="ALLOW")
    is_paused = models.BooleanField(default=False)
    paused_reason = models.TextField(default="", blank=True)
    next_run_at = MomentField(null=True)
    next_entry = models.IntegerField(default=0)
    next_slot_at = MomentField(null=True)
    revision = models.IntegerField(default=1)

    class Meta:
        ordering = ["name"]
        permissions = [("execute_schedule", "Can run schedules")]
        constraints = [
            models.CheckConstraint(
                name="paused_schedule_has_no_next_run", condition=Q(is_paused=False) | Q(next_run_at__isnull=True)
            )
        ]
        indexes = [
            models.Index(name="schedule_due", fields=["next_run_at"], condition=Q(next_run_at__isnull=False)),
            models.Index(name="schedule_by_workflow", fields=["workflow_name", "name"]),
        ]

    def __str__(self) -> str:
        return self.name


class ScheduleExecution(models.Model):
    """A slot of a schedule with its result. The id is derived from the slot, so that each slot has one row."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_SCHEDULE": "schedule_name"}

    # Set by queries and commands that load more than the row.
    run_keys: Any

    id = IdField(primary_key=True)
    schedule_name = models.CharField(max_length=255)
    workflow_name = models.CharField("definition", max_length=255)
    run_id = IdField(default="", blank=True)
    state = models.CharField(max_length=16)
    slot_at = MomentField()
    executed_at = MomentField()
    cron_expression = models.TextField(default="", blank=True)
    zone_id = models.CharField(max_length=64, default="UTC")
    waits_for_others = models.BooleanField(default=False)
    created_at = MomentField()
    reason = models.TextField(default="", blank=True)
    trace = models.TextField(default="", blank=True)
    request = DocumentField(default=dict)

    class Meta:
        constraints = [
            models.CheckConstraint(name="execution_state_is_known", condition=Q(state__in=[EXECUTED, FAILED, WAITING]))
        ]
        indexes = [
            models.Index(name="execution_by_slot", fields=["-slot_at", "id"]),
            models.Index(name="execution_of_schedule", fields=["schedule_name", "-slot_at"]),
            models.Index(name="execution_by_state", fields=["state", "-slot_at"]),
            models.Index(name="execution_by_workflow", fields=["workflow_name", "-slot_at"]),
            models.Index(name="execution_by_time", fields=["executed_at"]),
            models.Index(name="execution_waiting", fields=["schedule_name", "slot_at"], condition=Q(state=WAITING)),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_name} at {self.slot_at}"

    @property
    def shown_state(self) -> str:
        """The state that pages show. The API reports a skipped slot as failed."""
        return shown_state(self.state, self.reason)


def shown_state(state: str, reason: str) -> str:
    """Return the state that pages show for an execution, given its state and reason in the API."""
    return SKIPPED if state == FAILED and reason.startswith(SKIP_REASON) else state


class Scheduler(models.Model):
    """One row with the state of the scheduler: operators can pause all schedules at once."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    is_paused = models.BooleanField(default=False)
    changed_at = MomentField(default=0)
    changed_by = models.CharField(max_length=255, default="", blank=True)


def open_runs_of(schedule: str) -> list[str]:
    """Return the open runs of a schedule, earliest first."""
    rows = fetch(
        "SELECT id FROM conductor_run WHERE schedule = %s AND NOT (schedule = '') AND status IN ('PAUSED', 'RUNNING') "
        "ORDER BY created_at, id",
        [schedule],
    )
    return [id for (id,) in rows]


def count_waiting_slots(schedule: str) -> int:
    sql = "SELECT COUNT(*) FROM conductor_scheduleexecution WHERE state = 'POLLED' AND schedule_name = %s"
    return fetch(sql, [schedule])[0][0]
