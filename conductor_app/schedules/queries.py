"""Slots of schedules: upcoming and past ones.

Upcoming slots name the clock changes in their time zone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from ..access.visibility import visible
from ..core.cron import parse_timetable
from ..core.errors import RequestRefused
from ..runs.models import Run
from ..utils.formatting import format_duration
from .models import FAILED, Schedule, ScheduleExecution, Scheduler

LIMIT = 10
MAX_SLOTS = 20
LATE_MS = 60_000
"""A run that starts this long after its slot is late."""


@dataclass(frozen=True, slots=True)
class UpcomingSlot:
    """One upcoming slot: its local time, and a note on clock changes."""

    at: int
    local: str
    zone_id: str
    note: str


def upcoming_slots(document: Mapping[str, Any], now: int) -> list[UpcomingSlot]:
    """Return the next slots of a schedule.

    Raises:
        Invalid: when the schedule cannot be parsed.
    """
    table = parse_timetable(document)
    found: list[UpcomingSlot] = []
    before: dict[int, int] = {}
    slot = table.after(now)
    while slot is not None and len(found) < LIMIT:
        entry = table.entries[slot.entry]
        found.append(_upcoming_slot(slot.at, entry.zone, entry.zone_id, before.get(slot.entry, now)))
        before[slot.entry] = slot.at
        slot = table.following(slot, slot.at)
    return found


def _upcoming_slot(at: int, clocks: tzinfo, zone_id: str, before: int) -> UpcomingSlot:
    local = _to_datetime(at).astimezone(clocks)
    earlier = _to_datetime(before).astimezone(clocks)
    shift = (local.utcoffset() or timedelta()) - (earlier.utcoffset() or timedelta())
    return UpcomingSlot(
        at, f"{date_format(local, 'D')} {local:%Y-%m-%d %H:%M:%S %z}", zone_id, _clock_change_note(shift, local)
    )


def _clock_change_note(shift: timedelta, local: datetime) -> str:
    """Return a note if the clocks have changed since the previous slot."""
    seconds = int(shift.total_seconds())
    if seconds:
        forward = _("clocks moved forward by %(span)s since the previous slot")
        back = _("clocks moved back by %(span)s since the previous slot")
        return (forward if seconds > 0 else back) % {"span": format_duration(abs(seconds) * 1000)}
    if local.fold:
        return _("this hour occurs twice on that day; second occurrence")
    return ""


def _to_datetime(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


def missed_times(document: Mapping[str, Any], first: int, last: int, most: int) -> list[int]:
    """Return the first `most` slots between two times.

    Raises:
        Invalid: when the schedule cannot be parsed.
    """
    found = []
    for slot in parse_timetable(document).between(first, last):
        found.append(slot.at)
        if len(found) >= most:
            break
    return found


@dataclass(frozen=True, slots=True)
class PastSlot:
    execution: ScheduleExecution
    run: Run | None

    @property
    def late_ms(self) -> int:
        return max(self.execution.executed_at - self.execution.slot_at, 0)


def jitter_ms(document: Mapping[str, Any]) -> int:
    """Return the jitter of a schedule in milliseconds, or 0 if the schedule cannot be parsed."""
    try:
        return parse_timetable(document).jitter_ms
    except RequestRefused:
        return 0


def overdue_ms(schedule: Schedule, now: int) -> int:
    """Return how long a schedule is overdue, in milliseconds, or 0 if it is not late."""
    due = schedule.next_run_at
    if due is None or now - due < LATE_MS or Scheduler.objects.filter(is_paused=True).exists():
        return 0
    return now - due


def handled_slots(name: str, slots: Sequence[int]) -> frozenset[int]:
    """Return the slots that have run or are waiting to run."""
    rows = ScheduleExecution.objects.filter(schedule_name=name).exclude(state=FAILED)
    between = rows.filter(slot_at__gte=slots[0], slot_at__lte=slots[-1]) if slots else rows.none()
    return frozenset(between.values_list("slot_at", flat=True)) & frozenset(slots)


def past_slots(name: str) -> list[PastSlot]:
    """Return the last slots of a schedule, newest first."""
    rows = list(ScheduleExecution.objects.filter(schedule_name=name).order_by("-slot_at")[:MAX_SLOTS])
    runs = visible(Run.objects.defer_payloads()).in_bulk([row.run_id for row in rows if row.run_id])
    return [PastSlot(row, runs.get(row.run_id)) for row in rows]
