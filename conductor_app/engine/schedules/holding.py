"""Schedules are held and let go: one of them, or all at once."""

from django.db import transaction

from ... import clock
from ...core.errors import NotFound
from ...models import Schedule, Scheduler
from .rows import locked, note, put_next, set_next, timetable_of

MOST_SAMPLES = 10
ALL = "*"


HELD = (
    "is_paused", "paused_reason", "updated_at", "updated_by", "revision", "next_run_at", "next_slot_at", "next_entry",
)  # fmt: skip
"""The columns that holding a schedule and letting it go changes."""


def pause(name: str, by: str, reason: str = "") -> None:
    """Let a schedule fire no more until it is resumed. Raises NotFound."""
    with transaction.atomic():
        row, now = locked(name), clock.now()
        row.is_paused, row.paused_reason = True, reason
        _write(row, by, now)
        note(name, "pause", by, now, reason)


def resume(name: str, by: str) -> None:
    """Let a paused schedule fire again, from now on. Raises NotFound, for one that is not paused too."""
    with transaction.atomic():
        row, now = locked(name), clock.now()
        if not row.is_paused:
            raise NotFound(f"The schedule {name} is not paused.")
        row.is_paused, row.paused_reason = False, ""
        _write(row, by, now)
        note(name, "resume", by, now)


def _write(row: Schedule, by: str, now: int) -> None:
    row.updated_at, row.updated_by, row.revision = now, by[:255], row.revision + 1
    set_next(row, now)
    row.save(update_fields=HELD)


def hold_all(by: str) -> None:
    """Let no schedule fire; each keeps its place."""
    _hold_all(True, by)


def let_all_go(by: str) -> None:
    """Let schedules fire again: what they came to meanwhile is handled as after a time in which no server ran."""
    _hold_all(False, by)


def _hold_all(is_paused: bool, by: str) -> None:
    with transaction.atomic():
        now = clock.now()
        said = {"is_paused": is_paused, "changed_at": now, "changed_by": by[:255]}
        Scheduler.objects.update_or_create(pk=1, defaults=said)
        note(ALL, "pause" if is_paused else "resume", by, now)


def requeue(by: str) -> tuple[int, list[str]]:
    """Give a next slot to every schedule that should have one and has none; how many, and some of their names."""
    now = clock.now()
    stranded = Schedule.objects.filter(is_paused=False, next_run_at=None)
    names = [row.name for row in stranded.iterator(chunk_size=500) if timetable_of(row).after(now) is not None]
    mended = [name for name in names if _mend(name)]
    with transaction.atomic():
        note(ALL, "requeue", by, now, mended=len(mended))
    return len(mended), mended[:MOST_SAMPLES]


def _mend(name: str) -> bool:
    with transaction.atomic():
        row = Schedule.objects.select_for_update().filter(name=name, is_paused=False, next_run_at=None).first()
        if row is None:
            return False
        put_next(row, timetable_of(row).after(clock.now()))
        row.save(update_fields=["next_run_at", "next_slot_at", "next_entry"])
        return True
