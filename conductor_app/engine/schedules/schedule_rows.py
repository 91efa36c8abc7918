"""Helpers for the rows of schedules: lock, read the document, set the next slot, and audit."""

from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from ...core.errors import NotFound
from ...core.masking import REDACTED
from ...core.timetable import ScheduleSlot, Timetable, parse_timetable
from ...models import Schedule
from ...models.fields import dumps, loads_encrypted
from .. import audit


def lock_schedule(name: str) -> Schedule:
    """Lock a schedule until the transaction ends.

    Raises:
        NotFound: when there is no such schedule.
    """
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
    """Return the timetable of a schedule."""
    return parse_timetable(schedule.document)


def next_slot(schedule: Schedule) -> ScheduleSlot | None:
    """Return the next slot of a schedule. `next_run_at` is later by the schedule's spread."""
    return None if schedule.next_slot_at is None else ScheduleSlot(schedule.next_slot_at, schedule.next_entry)


def set_next_from_now(schedule: Schedule, now: int) -> None:
    """Set the next slot after `now`. Slots that were missed before are skipped."""
    set_next_slot(schedule, None if schedule.is_paused else timetable_of(schedule).after(now))


def set_next_slot(schedule: Schedule, slot: ScheduleSlot | None) -> None:
    """Set the next slot of a schedule."""
    at = timetable_of(schedule).runs_at(slot, schedule.name) if slot else None
    schedule.next_run_at, schedule.next_slot_at = at, slot.at if slot else None
    schedule.next_entry = slot.entry if slot else 0


def record_schedule_change(schedule: str, action: str, by: str, now: int, reason: str = "", **facts: Any) -> None:
    """Write an audit entry for a change of a schedule."""
    audit.record("schedule", schedule, action, by, reason=reason, facts=facts, at=now)
