"""Slots of schedules: upcoming and past ones, and a calendar with their results and durations.

Upcoming slots name the clock changes in their time zone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice, pairwise
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from ..core.cron import (
    parse_timetable,
)
from ..core.errors import RequestRefused
from ..definitions.durations import ENOUGH
from ..definitions.models import DurationBaseline
from ..runs.models import Run
from ..utils.formatting import format_duration
from .models import EXECUTED, FAILED, WAITING, Schedule, ScheduleExecution, Scheduler

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


def upcoming_slots(document: Mapping[str, Any], now: int, most: int = LIMIT) -> list[UpcomingSlot]:
    """Return the next slots of a schedule.

    Raises:
        Invalid: when the schedule cannot be parsed.
    """
    table = parse_timetable(document)
    found: list[UpcomingSlot] = []
    before: dict[int, int] = {}
    slot = table.after(now)
    while slot is not None and len(found) < most:
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
    """One past slot with its run."""

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
    runs = Run.objects.defer_payloads().in_bulk([row.run_id for row in rows if row.run_id])
    return [PastSlot(row, runs.get(row.run_id)) for row in rows]


MAX_SCHEDULES = 100
MAX_CALENDAR_SLOTS = 700
"""Upcoming slots that one calendar computes, over all schedules."""
MIN_SLOTS = 7
MAX_PAST = 3_000
MAX_MEASURED = 1_500
"""Past slots, newest first, whose runs are read."""
MAX_PER_DAY = 60
COMING = "COMING"


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """One line of a day: one slot of a schedule, or several slots collapsed. `is_open`: more slots follow that day.

    `end`: the end of the run, for an upcoming slot the expected one. `status`: the status of the run, if it is known.
    """

    at: int
    name: str
    pk: int | None
    state: str
    count: int = 1
    is_open: bool = False
    end: int = 0
    run_id: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """One day in the reader's time zone. `hours`: 23 or 25 when daylight saving time changes."""

    date: date
    hours: float
    entries: Sequence[CalendarEntry]
    more: int = 0


@dataclass(frozen=True, slots=True)
class CalendarLane:
    """All entries of one schedule, in order."""

    name: str
    pk: int | None
    entries: Sequence[CalendarEntry]


@dataclass(slots=True)
class CalendarPeriod:
    """Days in sequence, from `begin` to `end`. `lanes`: the same slots by schedule.

    `unreadable`: number of schedules that cannot be parsed; `is_cut`: some schedules are not shown.
    """

    begin: int
    end: int
    days: list[CalendarDay] = field(default_factory=list)
    lanes: list[CalendarLane] = field(default_factory=list)
    unreadable: int = 0
    is_cut: bool = False


def calendar_period(first: date, days: int, clocks: tzinfo, now: int, part: str = "") -> CalendarPeriod:
    """Return the days from `first`, for the schedules whose name contains `part`."""
    starts = [_day_start(first + timedelta(days=number), clocks) for number in range(days + 1)]
    rows = list(Schedule.objects.filter(name__icontains=part).order_by("name")[: MAX_SCHEDULES + 1])
    found = CalendarPeriod(starts[0], starts[-1], is_cut=len(rows) > MAX_SCHEDULES)
    rows = rows[:MAX_SCHEDULES]
    entries = [
        *_past_entries(rows, starts[0], min(starts[-1] - 1, now), part, now),
        *_upcoming_entries(rows, now, starts, found),
    ]
    found.lanes = _lanes(entries)
    for number in range(days):
        of_day = [each for each in entries if starts[number] <= each.at < starts[number + 1]]
        merged = sorted(_merge_entries(of_day), key=lambda each: (each.at, each.name))
        hours = (starts[number + 1] - starts[number]) / 3_600_000
        found.days.append(
            CalendarDay(first + timedelta(days=number), hours, merged[:MAX_PER_DAY], max(len(merged) - MAX_PER_DAY, 0))
        )
    return found


def _lanes(entries: Sequence[CalendarEntry]) -> list[CalendarLane]:
    by_name: dict[str, list[CalendarEntry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda each: each.at):
        by_name[entry.name].append(entry)
    return [CalendarLane(name, by_name[name][0].pk, by_name[name]) for name in sorted(by_name)[:MAX_SCHEDULES]]


def _day_start(day: date, clocks: tzinfo) -> int:
    return int(datetime.combine(day, time(), clocks).timestamp() * 1000)


def _past_entries(rows: Sequence[Schedule], begin: int, end: int, part: str, now: int) -> Iterator[CalendarEntry]:
    """Yield the results of past slots."""
    numbers = {row.name: row.pk for row in rows}
    slots = ScheduleExecution.objects.filter(slot_at__gte=begin, slot_at__lte=end)
    if part:
        slots = slots.filter(schedule_name__in=list(numbers))
    values = list(slots.order_by("-slot_at").values_list("slot_at", "schedule_name", "state", "run_id")[:MAX_PAST])
    runs = _run_ends([run_id for *_, run_id in values[:MAX_MEASURED] if run_id])
    for at, name, state, run_id in values:
        status, ended_at = runs.get(run_id, ("", at))
        run_id = run_id if status else ""
        yield CalendarEntry(at, name, numbers.get(name), state, end=ended_at or now, run_id=run_id, status=status)


def _run_ends(ids: Sequence[str]) -> dict[str, tuple[str, int | None]]:
    rows = Run.objects.filter(pk__in=ids).values_list("pk", "status", "ended_at") if ids else ()
    return {pk: (status, ended_at) for pk, status, ended_at in rows}


def _typical_durations(rows: Sequence[Schedule]) -> dict[str, int]:
    """Return the median duration of the newest measured version of each workflow."""
    found = DurationBaseline.objects.filter(ref="", count__gte=ENOUGH, name__in={row.workflow_name for row in rows})
    return dict(found.order_by("version").values_list("name", "p50_ms"))


def _upcoming_entries(
    rows: Sequence[Schedule], now: int, starts: Sequence[int], found: CalendarPeriod
) -> Iterator[CalendarEntry]:
    """Yield the upcoming slots. A frequent schedule gets one line per day."""
    firing = [row for row in rows if not row.is_paused]
    most = max(MAX_CALENDAR_SLOTS // max(len(firing), 1), MIN_SLOTS)
    typical = _typical_durations(firing) if firing else {}
    for row in firing:
        duration = typical.get(row.workflow_name, 0)
        # An overdue slot is still upcoming.
        begin = max(min(row.next_slot_at or now + 1, now + 1), starts[0])
        try:
            slots = [slot.at for slot in islice(parse_timetable(row.document).between(begin, starts[-1] - 1), most + 1)]
        except RequestRefused:
            found.unreadable += 1
            continue
        if len(slots) <= most:
            yield from (CalendarEntry(at, row.name, row.pk, COMING, end=at + duration) for at in slots)
        else:
            yield from _daily_summaries(row, begin, starts)


def _daily_summaries(row: Schedule, begin: int, starts: Sequence[int]) -> Iterator[CalendarEntry]:
    table = parse_timetable(row.document)
    for start, end in pairwise(starts):
        slot = table.after(max(start, begin) - 1)
        if slot is not None and slot.at < end:
            yield CalendarEntry(slot.at, row.name, row.pk, COMING, is_open=True, end=end)


def _merge_entries(entries: Iterable[CalendarEntry]) -> Iterator[CalendarEntry]:
    """Merge more than four slots of one schedule with the same state into one line."""
    alike: dict[tuple[str, str], list[CalendarEntry]] = defaultdict(list)
    for each in entries:
        alike[each.name, each.state].append(each)
    for (name, state), group in alike.items():
        if len(group) <= 4:
            yield from group
        else:
            first = min(group, key=lambda each: each.at)
            yield CalendarEntry(first.at, name, first.pk, state, len(group))


STATES = (EXECUTED, FAILED, WAITING, COMING)
"""States of a calendar line."""
