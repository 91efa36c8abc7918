"""A schedule's row: found, locked, set to its next slot, and what is noted of changes to it."""

from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from ...core.errors import NotFound
from ...core.masking import HIDDEN
from ...core.timetable import ScheduleSlot, Timetable, parse_timetable
from ...models import AuditEntry, Schedule
from ...models.fields import dumps, loads_encrypted


def lock_schedule(name: str) -> Schedule:
    """The schedule, held until the transaction ends; raises NotFound."""
    found = Schedule.objects.select_for_update().filter(name=name).first()
    if found is None:
        raise NotFound(f"No such schedule found by name: {name}")
    return found


def stored_document(schedule: Schedule) -> dict[str, Any]:
    """The schedule's document as it is kept: what the workflow's definition masks in its input is sealed."""
    if HIDDEN not in (dumps(schedule.document) or ""):
        # Nothing in it reads as if it had been sealed.
        return schedule.document
    texts = Schedule.objects.filter(pk=schedule.pk).annotate(text=Cast("document", TextField()))
    return loads_encrypted(texts.values_list("text", flat=True).get())


def timetable_of(schedule: Schedule) -> Timetable:
    """When it fires."""
    return parse_timetable(schedule.document)


def next_slot(schedule: Schedule, table: Timetable) -> ScheduleSlot | None:
    """The slot that it comes to next, which `next_run_at` follows by its spread.

    What wrote the row last may know of no spread: then `next_run_at` is the slot itself.
    """
    if schedule.next_run_at is None:
        return None
    if schedule.next_slot_at is not None:
        slot = ScheduleSlot(schedule.next_slot_at, schedule.next_entry)
        if table.runs_at(slot, schedule.name) == schedule.next_run_at:
            return slot
    return ScheduleSlot(schedule.next_run_at, schedule.next_entry)


def set_next_from_now(schedule: Schedule, now: int) -> None:
    """From now on: what was missed while it was paused, or before it was changed, is passed over."""
    set_next_slot(schedule, None if schedule.is_paused else timetable_of(schedule).after(now))


def set_next_slot(schedule: Schedule, slot: ScheduleSlot | None) -> None:
    """Have it fire at this slot."""
    at = timetable_of(schedule).runs_at(slot, schedule.name) if slot else None
    schedule.next_run_at, schedule.next_slot_at = at, slot.at if slot else None
    schedule.next_entry = slot.entry if slot else 0


def record_schedule_change(schedule: str, action: str, by: str, now: int, reason: str = "", **facts: Any) -> None:
    """Keep who did what."""
    AuditEntry.objects.create(
        at=now, actor=by, action=action, object_type="schedule", object_id=schedule, reason=reason, facts=facts
    )
