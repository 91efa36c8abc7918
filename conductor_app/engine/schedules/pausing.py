"""Commands that pause and resume one schedule or all of them."""

from django.db import transaction

from ... import clock
from ...core.errors import NotFound
from ...models import Schedule, Scheduler
from .schedule_rows import lock_schedule, record_schedule_change, set_next_from_now, set_next_slot, timetable_of

MAX_SAMPLES = 10
ALL = "*"


HELD = (
    "is_paused", "paused_reason", "updated_at", "updated_by", "revision", "next_run_at", "next_slot_at", "next_entry",
)  # fmt: skip
"""The columns that a pause and a resume change."""


def pause_schedule(name: str, by: str, reason: str = "") -> None:
    """Pause a schedule until it is resumed.

    Raises:
        NotFound: when there is no such schedule.
    """
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
