"""Firing of due slots, and commands that pause and resume schedules.

The run, its execution record and the next slot of the schedule are saved in one transaction.
"""

import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from ..access import audit
from ..access.authentication import acting_as_owner
from ..access.encryption import decrypt_masked
from ..core.cron import ScheduleSlot, Timetable, parse_timetable
from ..core.errors import Conflict, Forbidden, NotFound, RequestRefused
from ..core.fairness import build_share
from ..core.masking import REDACTED
from ..core.primitives import derived_id
from ..db.database import transaction
from ..db.fields import dumps, loads_encrypted, strip_nul
from ..db.transient_errors import describe_transient, is_database_error, is_transient
from ..runs.commands import control
from ..runs.commands.start import StartRequest, start_run
from ..utils import clock
from . import models as store
from .models import EXECUTED, FAILED, SKIP_REASON, WAITING, Schedule, ScheduleExecution, Scheduler


def lock_schedule(name: str) -> Schedule:
    """Lock a schedule until the transaction ends."""
    found = Schedule.objects.select_for_update().filter(name=name).first()
    if found is None:
        raise NotFound(f"No such schedule found by name: {name}")
    return found


def stored_document(schedule: Schedule) -> dict[str, Any]:
    """Return the document of a schedule as stored, with the masked values of its input encrypted."""
    if REDACTED not in (dumps(schedule.document) or ""):
        # The document has no redacted values.
        return schedule.document
    texts = Schedule.objects.filter(pk=schedule.pk).annotate(text=Cast("document", TextField()))
    return loads_encrypted(texts.values_list("text", flat=True).get())


def timetable_of(schedule: Schedule) -> Timetable:
    return parse_timetable(schedule.document)


def next_slot(schedule: Schedule) -> ScheduleSlot | None:
    """Return the next slot of a schedule. `next_run_at` is later by the schedule's spread."""
    return None if schedule.next_slot_at is None else ScheduleSlot(schedule.next_slot_at, schedule.next_entry)


def set_next_from_now(schedule: Schedule, now: int) -> None:
    """Set the next slot after `now`. Slots that were missed before are skipped."""
    set_next_slot(schedule, None if schedule.is_paused else timetable_of(schedule).after(now))


def set_next_slot(schedule: Schedule, slot: ScheduleSlot | None) -> None:
    at = timetable_of(schedule).runs_at(slot, schedule.name) if slot else None
    schedule.next_run_at, schedule.next_slot_at = at, slot.at if slot else None
    schedule.next_entry = slot.entry if slot else 0


def record_schedule_change(schedule: str, action: str, by: str, now: int, reason: str = "", **facts: Any) -> None:
    """Write an audit entry for a change of a schedule."""
    audit.record("schedule", schedule, action, by, reason=reason, facts=facts, at=now)


def new_execution(schedule: Schedule, table: Timetable, slot: ScheduleSlot, now: int) -> ScheduleExecution:
    """Return an unsaved execution record of a slot. The same slot always has the same id."""
    entry = table.entries[slot.entry]
    id = derived_id(slot.at, schedule.pk, slot.at, slot.entry)
    return execution_record(schedule, id, slot.at, now, entry.expression, entry.zone_id)


def execution_record(
    schedule: Schedule, id: str, slot_at: int, now: int, expression: str, zone_id: str
) -> ScheduleExecution:
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
        fairness=build_share(request.get("fairnessKey"), request.get("fairnessWeight")),
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


MAX_SAMPLES = 10
ALL = "*"


HELD = (
    "is_paused", "paused_reason", "updated_at", "updated_by", "revision", "next_run_at", "next_slot_at", "next_entry",
)  # fmt: skip
"""The columns that a pause and a resume change."""


def pause_schedule(name: str, by: str, reason: str = "") -> None:
    """Pause a schedule until it is resumed."""
    with transaction.atomic():
        row, now = lock_schedule(name), clock.now()
        row.is_paused, row.paused_reason = True, reason
        _save_schedule(row, by, now)
        record_schedule_change(name, "pause", by, now, reason)


def resume_schedule(name: str, by: str) -> None:
    """Resume a paused schedule. The slots that it missed are skipped.

    Raises:
        NotFound: when there is no such schedule, or it is not paused.
    """
    with transaction.atomic():
        row, now = lock_schedule(name), clock.now()
        if not row.is_paused:
            raise NotFound(f"The schedule {name} is not paused.")
        row.is_paused, row.paused_reason = False, ""
        _save_schedule(row, by, now)
        record_schedule_change(name, "resume", by, now)


def _save_schedule(row: Schedule, by: str, now: int) -> None:
    row.updated_at, row.updated_by, row.revision = now, by[:255], row.revision + 1
    set_next_from_now(row, now)
    row.save(update_fields=HELD)


def pause_all(by: str) -> None:
    """Pause the firing of all schedules. Each keeps its next slot."""
    _set_all_paused(True, by)


def resume_all(by: str) -> None:
    """Resume the firing of all schedules. Missed slots are handled as after a downtime of the server."""
    _set_all_paused(False, by)


def _set_all_paused(is_paused: bool, by: str) -> None:
    with transaction.atomic():
        now = clock.now()
        state = {"is_paused": is_paused, "changed_at": now, "changed_by": by[:255]}
        Scheduler.objects.update_or_create(pk=1, defaults=state)
        record_schedule_change(ALL, "pause" if is_paused else "resume", by, now)


def repair_schedules(by: str) -> tuple[int, list[str]]:
    """Set the next slot of every schedule that lost it. Returns their number, and up to MAX_SAMPLES names."""
    now = clock.now()
    stranded = Schedule.objects.filter(is_paused=False, next_run_at=None)
    names = [row.name for row in stranded.iterator(chunk_size=500) if timetable_of(row).after(now) is not None]
    repaired = [name for name in names if _repair_schedule(name)]
    with transaction.atomic():
        record_schedule_change(ALL, "requeue", by, now, mended=len(repaired))
    return len(repaired), repaired[:MAX_SAMPLES]


def _repair_schedule(name: str) -> bool:
    with transaction.atomic():
        row = Schedule.objects.select_for_update().filter(name=name, is_paused=False, next_run_at=None).first()
        if row is None:
            return False
        set_next_slot(row, timetable_of(row).after(clock.now()))
        row.save(update_fields=["next_run_at", "next_slot_at", "next_entry"])
        return True


log = logging.getLogger(__name__)

BY = "scheduler"
EXCLUSIVE = ("SKIP", "QUEUE")
"""Overlap policies that start a run only when no other run of the schedule is open."""
MAX_WAITING = 100
"""The maximum number of waiting slots of one schedule. Further slots are skipped."""
RETRY_MS, MAX_RETRY_MS = 1_000, 60_000
"""The delays of a start that met a fault of the moment. They grow with the age of the slot's execution."""

Claim = Callable[[], bool]


class SlotTaken(Exception):
    """Another process has handled the slot or changed the schedule."""


class PreviousRunOpen(Exception):
    """A run of the schedule is still open."""


def fire_schedule(schedule_id: int) -> None:
    """Handle the due slot of a schedule, and advance the schedule to its next slot."""
    schedule, now = Schedule.objects.filter(pk=schedule_id).first(), clock.now()
    if schedule is None or schedule.next_run_at is None or schedule.next_run_at > now:
        return
    table = timetable_of(schedule)
    slot = next_slot(schedule)
    if slot is None:
        return
    claim = _advance_claim(schedule, slot, table, now)
    if table.is_too_old(slot, now):
        with transaction.atomic():
            claim()
        return
    execution = new_execution(schedule, table, slot, now)
    if schedule.overlap == "TERMINATE_OTHER":
        _terminate_others(schedule.name)
    try:
        _start_run(schedule, execution, claim)
    except SlotTaken:
        return
    except PreviousRunOpen:
        _postpone_or_skip(schedule, execution, claim)


def _advance_claim(schedule: Schedule, slot: ScheduleSlot, table: Timetable, now: int) -> Claim:
    """Return a function that claims the slot by advancing its schedule; False if another process advanced it first."""
    following = table.following(slot, now)
    seen = {name: getattr(schedule, name) for name in ("next_run_at", "next_entry", "revision")}
    after = Schedule(name=schedule.name, document=schedule.document)
    set_next_slot(after, following)
    fresh = {name: getattr(after, name) for name in ("next_run_at", "next_slot_at", "next_entry")}
    return lambda: bool(Schedule.objects.filter(pk=schedule.pk, **seen).update(**fresh))


def start_waiting_execution(execution_id: str) -> None:
    """Start the run of a waiting slot, if its overlap policy allows it now."""
    execution = ScheduleExecution.objects.filter(pk=execution_id, state=WAITING).first()
    schedule = Schedule.objects.filter(name=execution.schedule_name).first() if execution else None
    if execution is None or schedule is None:
        return

    def claim() -> bool:
        # The lock on the schedule serializes the starts of its runs.
        is_there = Schedule.objects.select_for_update().filter(pk=schedule.pk, is_paused=False).exists()
        waits = ScheduleExecution.objects.select_for_update().filter(pk=execution_id, state=WAITING)
        return is_there and waits.exists()

    execution.executed_at = clock.now()
    try:
        _start_run(schedule, execution, claim)
    except SlotTaken:
        return
    except PreviousRunOpen:
        # The slot can start when no run is open; until then no sweep reads it.
        ScheduleExecution.objects.filter(pk=execution_id, state=WAITING).update(waits_for_others=True)


def _start_run(schedule: Schedule, execution: ScheduleExecution, claim: Claim) -> None:
    """Start the run of a slot, or record why it could not be started."""
    is_standalone = schedule.overlap in EXCLUSIVE or execution.waits_for_others
    if is_standalone and _blocks_start(schedule, execution):
        raise PreviousRunOpen

    def record_start(run_id: str) -> None:
        _claim_slot(claim)
        if is_standalone and _blocks_start(schedule, execution):
            raise PreviousRunOpen
        _save_execution(execution, EXECUTED, run_id=run_id)

    try:
        with acting_as_owner(schedule.owner_id):
            run_id = start_run(start_request(schedule, execution), BY, record_start)
    except (SlotTaken, PreviousRunOpen):
        raise
    except Forbidden as refused:
        _record_failure(execution, claim, refused)
        pause_schedule(schedule.name, BY, f"The owner lost a permission: {refused.message}")
    except Exception as fault:
        if is_database_error(fault):
            raise
        if is_transient(fault):
            execution.waits_for_others = is_standalone
            _retry_later(execution, claim, describe_transient(fault))
        else:
            _record_failure(execution, claim, fault)
    else:
        if not execution.run_id:
            # The idempotency key of the schedule belongs to an existing run.
            _record_outcome(claim, execution, EXECUTED, run_id=run_id)


def _blocks_start(schedule: Schedule, execution: ScheduleExecution) -> bool:
    if store.open_runs_of(schedule.name):
        return True
    # A new slot queues behind the waiting ones.
    return schedule.overlap == "QUEUE" and execution.state != WAITING and store.count_waiting_slots(schedule.name) > 0


def _claim_slot(claim: Claim) -> None:
    if not claim():
        raise SlotTaken


def _terminate_others(schedule: str) -> None:
    for run_id in store.open_runs_of(schedule):
        try:
            control.terminate_run(run_id, BY, f"The schedule {schedule} starts its next run.")
        except (Conflict, NotFound):
            # The run has ended since it was read.
            continue


def _postpone_or_skip(schedule: Schedule, execution: ScheduleExecution, claim: Claim) -> None:
    """Let the slot wait for the end of an earlier run, or skip it."""
    if schedule.overlap == "QUEUE" and store.count_waiting_slots(schedule.name) < MAX_WAITING:
        execution.waits_for_others = True
        _record_outcome(claim, execution, WAITING, reason="Waiting for the end of an earlier run.")
        return
    because = (
        "an earlier run is still open" if schedule.overlap == "SKIP" else f"{MAX_WAITING} slots are already waiting"
    )
    _record_outcome(claim, execution, FAILED, reason=f"{SKIP_REASON}{because}.")


def _retry_later(execution: ScheduleExecution, claim: Claim, why: str) -> None:
    """Retry the start after a delay, which doubles the age of the execution until it is MAX_RETRY_MS."""
    now = clock.now()
    execution.executed_at = now + min(max(now - execution.created_at, RETRY_MS), MAX_RETRY_MS)
    _record_outcome(claim, execution, WAITING, reason=why)


def _record_failure(execution: ScheduleExecution, claim: Claim, fault: Exception) -> None:
    reason, trace = (
        (fault.message, "")
        if isinstance(fault, RequestRefused)
        else (f"{type(fault).__name__}: {fault}", traceback.format_exc()[-2000:])
    )
    if trace:
        log.exception("scheduled_start_failed", extra={"schedule": execution.schedule_name})
    _record_outcome(claim, execution, FAILED, reason=reason, trace=trace)


def _record_outcome(claim: Claim, execution: ScheduleExecution, state: str, **facts: str) -> None:
    """Record the result of a slot without a new run, unless another process handled the slot first."""
    with transaction.atomic():
        if claim():
            _save_execution(execution, state, **facts)


def _save_execution(
    execution: ScheduleExecution, state: str, *, run_id: str = "", reason: str = "", trace: str = ""
) -> None:
    execution.state, execution.run_id = state, run_id
    execution.reason, execution.trace = strip_nul(reason)[:999], strip_nul(trace)
    changed = [field.name for field in ScheduleExecution._meta.concrete_fields if field.name != "id"]
    ScheduleExecution.objects.bulk_create(
        [execution], update_conflicts=True, unique_fields=["id"], update_fields=changed
    )
