"""What people ask of a schedule: run it now, run what it has missed, tell when it will fire."""

from itertools import islice

from django.db import transaction

from ... import clock, randomness
from ...core.errors import Conflict, Invalid, NotFound
from ...core.ids import derived_id
from ...core.timetable import ScheduleSlot, parse_timetable
from ...models import Schedule, ScheduleExecution
from ...models.schedules import EXECUTED, FAILED, WAITING
from .. import runs
from .requests import execution_record, new_execution, start_request
from .rows import lock_schedule, next_slot, record_schedule_change, timetable_of

MOST_BACKFILLED = 5_000
"""Slots that one request may have run."""


def run_now(name: str, by: str, reason: str = "") -> str:
    """Start the schedule's run now, paused or not, whatever is open; its id. Raises NotFound, and what a start does."""
    schedule = Schedule.objects.filter(name=name).first()
    if schedule is None:
        raise NotFound(f"No such schedule found by name: {name}")
    now, entry = clock.now(), timetable_of(schedule).entries[0]
    id = derived_id(now, randomness.random_hex())
    execution = execution_record(schedule, id, now, now, entry.expression, entry.zone_id)

    def also(run_id: str) -> None:
        execution.state, execution.run_id = EXECUTED, run_id
        execution.save(force_insert=True)
        record_schedule_change(name, "run now", by, now, reason, run=run_id)

    return runs.start(start_request(schedule, execution), by, also)


def backfill(name: str, first: int, last: int, by: str, reason: str = "") -> int:
    """Have the slots of a span that is past run, but for those that have run already; how many will.

    Raises NotFound, Invalid for a span that is not past or too long, and Conflict for a paused schedule.
    """
    with transaction.atomic():
        schedule, now = lock_schedule(name), clock.now()
        if schedule.is_paused:
            raise Conflict(f"The schedule {name} is paused: resume it first.")
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
        raise Invalid("A backfill needs a startTime and an endTime that are past, in this order.")
    # What the schedule has yet to come to, it will come to by itself.
    ahead = next_slot(schedule, timetable_of(schedule))
    return last if ahead is None else min(last, ahead.at - 1)


def _slots_between(schedule: Schedule, first: int, last: int) -> list[ScheduleSlot]:
    slots = list(islice(timetable_of(schedule).between(first, last), MOST_BACKFILLED + 1))
    if len(slots) > MOST_BACKFILLED:
        raise Invalid(f"The span has more than {MOST_BACKFILLED} slots; ask for a part of it.")
    return slots


def _missed_executions(schedule: Schedule, slots: list[ScheduleSlot], now: int) -> list[ScheduleExecution]:
    """The notes of the slots that have not run and do not wait."""
    table = timetable_of(schedule)
    notes = {execution.id: execution for execution in (new_execution(schedule, table, slot, now) for slot in slots)}
    done = ScheduleExecution.objects.filter(schedule_name=schedule.name).exclude(state=FAILED)
    if slots:
        span = done.filter(slot_at__gte=slots[0].at, slot_at__lte=slots[-1].at).values_list("id", flat=True)
        for id in span.iterator(chunk_size=2000):
            notes.pop(id, None)
    for execution in notes.values():
        execution.state, execution.waits_for_others = WAITING, schedule.overlap != "ALLOW"
        execution.reason = "It waits for its turn."
    return list(notes.values())


def next_times(expression: str, zone_id: str, *, starts_at: int | None, ends_at: int | None, limit: int) -> list[int]:
    """The next moments at which an expression is true. Raises Invalid."""
    written = {"cronExpression": expression, "zoneId": zone_id}
    table = parse_timetable({**written, "scheduleStartTime": starts_at, "scheduleEndTime": ends_at})
    found, slot = [], table.after(clock.now())
    while slot is not None and len(found) < limit:
        found.append(slot.at)
        slot = table.after(slot.at)
    return found
