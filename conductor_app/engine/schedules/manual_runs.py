"""Commands of people on schedules: run now, backfill missed slots, and compute the next times."""

from itertools import islice

from django.db import transaction

from ... import clock, randomness
from ...access.current_actor import acting_as_owner
from ...core.errors import Conflict, Invalid, NotFound
from ...core.ids import derived_id
from ...core.timetable import ScheduleSlot, parse_timetable
from ...models import Schedule, ScheduleExecution
from ...models.schedules import EXECUTED, FAILED, WAITING
from ..runs import run_commands
from .requests import execution_record, new_execution, start_request
from .schedule_rows import lock_schedule, next_slot, record_schedule_change, timetable_of

MAX_BACKFILLED = 5_000
"""The maximum number of slots in one backfill."""


def run_now(name: str, by: str, reason: str = "") -> str:
    """Start a run of the schedule now, even if it is paused or has open runs. Returns the id of the run.

    Raises:
        NotFound: when there is no such schedule or definition.
        Invalid, Conflict, Busy: as `runs.start`.
    """
    schedule = Schedule.objects.filter(name=name).first()
    if schedule is None:
        raise NotFound(f"No such schedule found by name: {name}")
    now, entry = clock.now(), timetable_of(schedule).entries[0]
    id = derived_id(now, randomness.random_hex())
    execution = execution_record(schedule, id, now, now, entry.expression, entry.zone_id)

    def record_start(run_id: str) -> None:
        execution.state, execution.run_id = EXECUTED, run_id
        execution.save(force_insert=True)
        record_schedule_change(name, "run now", by, now, reason, run=run_id)

    with acting_as_owner(schedule.owner_id):
        return run_commands.start(start_request(schedule, execution), by, record_start)


def backfill(name: str, first: int, last: int, by: str, reason: str = "") -> int:
    """Run the slots of a past period that have not run. `first`, `last`: milliseconds. Returns the number of slots.

    Raises:
        NotFound: when there is no such schedule.
        Invalid: when the period is not in the past, or has too many slots.
        Conflict: when the schedule is paused.
    """
    with transaction.atomic():
        schedule, now = lock_schedule(name), clock.now()
        if schedule.is_paused:
            raise Conflict(f"The schedule {name} is paused. Resume it first.")
        slots = _slots_between(schedule, first, _check_span(schedule, first, last, now))
        missed = _missed_executions(schedule, slots, now)
        changed = [field.name for field in ScheduleExecution._meta.concrete_fields if field.name != "id"]
        ScheduleExecution.objects.bulk_create(
            missed, batch_size=50, update_conflicts=True, unique_fields=["id"], update_fields=changed
        )
        record_schedule_change(name, "backfill", by, now, reason, first=first, last=last, slots=len(missed))
    return len(missed)


def _check_span(schedule: Schedule, first: int, last: int, now: int) -> int:
    if not 0 <= first <= last <= now:
        raise Invalid(f"A backfill needs a startTime and a later endTime, both in the past (got {first} and {last}).")
    # The schedule fires the slots from its next one on by itself.
    ahead = next_slot(schedule)
    return last if ahead is None else min(last, ahead.at - 1)


def _slots_between(schedule: Schedule, first: int, last: int) -> list[ScheduleSlot]:
    slots = list(islice(timetable_of(schedule).between(first, last), MAX_BACKFILLED + 1))
    if len(slots) > MAX_BACKFILLED:
        raise Invalid(f"The period has more than {MAX_BACKFILLED} slots. Choose a shorter one.")
    return slots


def _missed_executions(schedule: Schedule, slots: list[ScheduleSlot], now: int) -> list[ScheduleExecution]:
    """Return the records of the slots that have not run and do not wait."""
    table = timetable_of(schedule)
    records = {execution.id: execution for execution in (new_execution(schedule, table, slot, now) for slot in slots)}
    done = ScheduleExecution.objects.filter(schedule_name=schedule.name).exclude(state=FAILED)
    if slots:
        span = done.filter(slot_at__gte=slots[0].at, slot_at__lte=slots[-1].at).values_list("id", flat=True)
        for id in span.iterator(chunk_size=2000):
            records.pop(id, None)
    for execution in records.values():
        execution.state, execution.waits_for_others = WAITING, schedule.overlap != "ALLOW"
        execution.reason = "Waiting to be started."
    return list(records.values())


def next_times(expression: str, zone_id: str, *, starts_at: int | None, ends_at: int | None, limit: int) -> list[int]:
    """Return the next times of a cron expression in milliseconds, at most `limit`.

    Raises:
        Invalid: when the expression or the time zone is invalid.
    """
    written = {"cronExpression": expression, "zoneId": zone_id}
    table = parse_timetable({**written, "scheduleStartTime": starts_at, "scheduleEndTime": ends_at})
    found: list[int] = []
    slot = table.after(clock.now())
    while slot is not None and len(found) < limit:
        found.append(slot.at)
        slot = table.after(slot.at)
    return found
