"""Firing of due slots: the run, the execution record and the schedule's next slot are saved in one transaction."""

import logging
import traceback
from collections.abc import Callable

from django.db import transaction

from ... import clock
from ...access.current_actor import acting_as_owner
from ...core.errors import Conflict, Forbidden, NotFound, RequestRefused
from ...core.timetable import ScheduleSlot, Timetable
from ...models import Schedule, ScheduleExecution
from ...models.schedules import EXECUTED, FAILED, WAITING
from ...store import schedules as store
from ...store.rows import strip_nul
from ...transient_errors import describe_transient, is_database_error, is_transient
from ..runs import run_commands
from .pausing import pause_schedule
from .requests import new_execution, start_request
from .schedule_rows import next_slot, set_next_slot, timetable_of

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
    """Start the run of a slot, or record why it could not be started.

    Raises:
        SlotTaken: when another process handled the slot.
        PreviousRunOpen: when a run of the schedule is open and the policy does not allow two.
        Exception: when the database cannot be reached, has no space, or is read-only. The slot stays due.
    """
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
            run_id = run_commands.start(start_request(schedule, execution), BY, record_start)
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
            run_commands.terminate_run(run_id, BY, f"The schedule {schedule} starts its next run.")
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
    _record_outcome(claim, execution, FAILED, reason=f"Skipped: {because}.")


def _retry_later(execution: ScheduleExecution, claim: Claim, why: str) -> None:
    """Retry the start after a delay, which doubles the age of the execution until it is MAX_RETRY_MS."""
    now = clock.now()
    execution.executed_at = now + min(max(now - execution.created_at, RETRY_MS), MAX_RETRY_MS)
    _record_outcome(claim, execution, WAITING, reason=why)


def _record_failure(execution: ScheduleExecution, claim: Claim, fault: Exception) -> None:
    reason, trace = (
        (fault.message, "")
        if isinstance(fault, RequestRefused)
        else (f"{type(fault).__name__}: {fault}", _stack_trace())
    )
    if trace:
        log.exception("scheduled_start_failed", extra={"schedule": execution.schedule_name})
    _record_outcome(claim, execution, FAILED, reason=reason, trace=trace)


def _stack_trace() -> str:
    return traceback.format_exc()[-2000:]


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
