"""Weekly calendar of all schedules: results of past slots, and upcoming slots."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import islice, pairwise

from ...core.errors import RequestRefused
from ...core.timetable import parse_timetable
from ...models import Schedule, ScheduleExecution
from ...models.schedules import EXECUTED, FAILED, WAITING

DAYS = 7
MAX_SCHEDULES = 100
MAX_SLOTS = 700
"""Upcoming slots that one calendar computes, over all schedules."""
MIN_SLOTS = DAYS
MAX_PAST = 3_000
MAX_PER_DAY = 60
COMING = "COMING"


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """One line of a day: one slot of a schedule, or several slots collapsed. `is_open`: more slots follow that day."""

    at: int
    name: str
    pk: int | None
    state: str
    count: int = 1
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """One day in the reader's time zone. `hours`: 23 or 25 when daylight saving time changes."""

    date: date
    hours: float
    entries: Sequence[CalendarEntry]
    more: int = 0


@dataclass(slots=True)
class CalendarWeek:
    """Seven days. `unreadable`: number of schedules that cannot be parsed; `is_cut`: some schedules are not shown."""

    days: list[CalendarDay] = field(default_factory=list)
    unreadable: int = 0
    is_cut: bool = False


def calendar_week(first: date, clocks: tzinfo, now: int, part: str = "") -> CalendarWeek:
    """Return the week that starts on a day, for the schedules whose name contains `part`."""
    starts = [_day_start(first + timedelta(days=number), clocks) for number in range(DAYS + 1)]
    rows = list(Schedule.objects.filter(name__icontains=part).order_by("name")[: MAX_SCHEDULES + 1])
    found = CalendarWeek(is_cut=len(rows) > MAX_SCHEDULES)
    rows = rows[:MAX_SCHEDULES]
    entries = [
        *_past_entries(rows, starts[0], min(starts[-1] - 1, now), part),
        *_upcoming_entries(rows, now, starts, found),
    ]
    for number in range(DAYS):
        of_day = [each for each in entries if starts[number] <= each.at < starts[number + 1]]
        merged = sorted(_merge_entries(of_day), key=lambda each: (each.at, each.name))
        hours = (starts[number + 1] - starts[number]) / 3_600_000
        found.days.append(
            CalendarDay(first + timedelta(days=number), hours, merged[:MAX_PER_DAY], max(len(merged) - MAX_PER_DAY, 0))
        )
    return found


def _day_start(day: date, clocks: tzinfo) -> int:
    return int(datetime.combine(day, time(), clocks).timestamp() * 1000)


def _past_entries(rows: Sequence[Schedule], begin: int, end: int, part: str) -> Iterator[CalendarEntry]:
    """Yield the results of the past slots of the week."""
    numbers = {row.name: row.pk for row in rows}
    slots = ScheduleExecution.objects.filter(slot_at__gte=begin, slot_at__lte=end)
    if part:
        slots = slots.filter(schedule_name__in=list(numbers))
    values = slots.order_by("-slot_at").values_list("slot_at", "schedule_name", "state")
    for at, name, state in values[:MAX_PAST]:
        yield CalendarEntry(at, name, numbers.get(name), state)


def _upcoming_entries(
    rows: Sequence[Schedule], now: int, starts: Sequence[int], found: CalendarWeek
) -> Iterator[CalendarEntry]:
    """Yield the upcoming slots. A frequent schedule gets one line per day."""
    firing = [row for row in rows if not row.is_paused]
    most = max(MAX_SLOTS // max(len(firing), 1), MIN_SLOTS)
    for row in firing:
        # An overdue slot is still upcoming.
        begin = max(min(row.next_slot_at or row.next_run_at or now + 1, now + 1), starts[0])
        try:
            slots = [slot.at for slot in islice(parse_timetable(row.document).between(begin, starts[-1] - 1), most + 1)]
        except RequestRefused:
            found.unreadable += 1
            continue
        if len(slots) <= most:
            yield from (CalendarEntry(at, row.name, row.pk, COMING) for at in slots)
        else:
            yield from _daily_summaries(row, begin, starts)


def _daily_summaries(row: Schedule, begin: int, starts: Sequence[int]) -> Iterator[CalendarEntry]:
    table = parse_timetable(row.document)
    for start, end in pairwise(starts):
        slot = table.after(max(start, begin) - 1)
        if slot is not None and slot.at < end:
            yield CalendarEntry(slot.at, row.name, row.pk, COMING, is_open=True)


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
