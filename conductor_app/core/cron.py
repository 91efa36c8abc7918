"""Cron expressions with six fields, as in Spring, and the slots of schedules."""

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

from .errors import Invalid

OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII)
MAX_HOURS = 18


@lru_cache(maxsize=1000)
def parse_zone(name: str) -> tzinfo:
    """Return the time zone with this name."""
    if name in ("Z", "UTC", "GMT", "UT", ""):
        return UTC
    if found := OFFSET.fullmatch(name):
        return _offset(name, *found.groups())
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise Invalid(f"Unknown time zone '{name[:100]}'. Use a name such as Europe/Berlin.") from None


def _offset(name: str, sign: str, hours: str, minutes: str | None) -> tzinfo:
    ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if ahead > timedelta(hours=MAX_HOURS):
        raise Invalid(f"The offset of time zone '{name}' is more than {MAX_HOURS} hours from UTC.")
    return timezone(ahead if sign == "+" else -ahead)


NUMBER = re.compile(r"\d{1,9}", re.ASCII)


class CronRefused(Invalid):
    """The cron expression cannot be read."""


@dataclass(frozen=True, slots=True)
class CronField:
    """The values of a field. `names`: names for its numbers in order, starting with 1."""

    name: str
    least: int
    most: int
    names: Sequence[str] = ()
    aliases: dict[int, int] = field(default_factory=dict)

    @property
    def all(self) -> range:
        return range(self.least, self.most + 1)


MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
SECOND, MINUTE, HOUR = CronField("second", 0, 59), CronField("minute", 0, 59), CronField("hour", 0, 23)
DAY_OF_MONTH = CronField("day of month", 1, 31)
MONTH = CronField("month", 1, 12, MONTHS)
# Sunday is 7, and 0 as well.
DAY_OF_WEEK = CronField("day of week", 1, 7, DAYS, {0: 7})


def parse_field_entry(part: str, field: CronField) -> list[int]:
    """Return the numbers of one list entry: `*`, `5`, `1-5`, `*/2`, `3/10`, `1-20/3`."""
    span, slash, step = part.partition("/")
    if not slash:
        return _replace_aliases(_parse_range(span, field), field)
    every = _parse_cron_number(step, field)
    if every < 1:
        raise CronRefused(f"the step in the {field.name} '{part}' must be at least 1")
    covered = _parse_range(span, field)
    is_open_ended = span != "*" and "-" not in span
    return _replace_aliases(range(covered[0], field.most + 1 if is_open_ended else covered[-1] + 1, every), field)


def _parse_range(span: str, field: CronField) -> range:
    if span == "*":
        return field.all
    first, dash, last = span.partition("-")
    begin = _check_field(first, field)
    if not dash:
        return range(begin, begin + 1)
    end = _check_field(last, field)
    if field.aliases and begin == field.most:
        # Where a range begins, Sunday is the first day of the week.
        begin = field.least - 1
    if begin > end:
        raise CronRefused(f"the {field.name} '{span}' ends before it begins; ranges do not wrap around")
    return range(begin, end + 1)


def _replace_aliases(found: Sequence[int], field: CronField) -> list[int]:
    return [field.aliases.get(number, number) for number in found]


def _check_field(text: str, field: CronField) -> int:
    """Return a number of the field from its number or name."""
    number = _parse_cron_number(text, field)
    if not field.least <= number <= field.most and number not in field.aliases:
        raise CronRefused(f"the {field.name} '{text}' must be from {field.least} to {field.most}")
    return number


def _parse_cron_number(text: str, field: CronField) -> int:
    if not NUMBER.fullmatch(text):
        raise CronRefused(f"the {field.name} '{text[:50]}' is invalid")
    return int(text)


def replace_names(text: str, field: CronField) -> str:
    """Return the text in capitals with its names replaced by numbers."""
    text = text.upper()
    for number, name in enumerate(field.names, 1):
        text = text.replace(name, str(number))
    return text


FRIDAY, SATURDAY, SUNDAY = 5, 6, 7


class Month:
    """A month: its length, and the weekday of each of its days."""

    __slots__ = ("first", "last", "month", "year")

    def __init__(self, year: int, month: int) -> None:
        self.year, self.month = year, month
        first, self.last = monthrange(year, month)
        self.first = first + 1

    def weekday(self, day: int) -> int:
        """Return the weekday of a day, from 1 (Monday) to 7 (Sunday)."""
        return (self.first + day - 2) % 7 + 1


DayRule = Callable[[Month], set[int]]
"""The days of a month that one entry of a field allows."""


def days_of_month(text: str) -> tuple[DayRule, ...]:
    text = "*" if text == "?" else text
    return tuple(_day_of_month(part) for part in text.split(","))


def _day_of_month(part: str) -> DayRule:
    if part.startswith("L"):
        return _days_before_month_end(part)
    if part.endswith("W"):
        return _nearest_weekday(_check_field(part[:-1], DAY_OF_MONTH))
    allowed = frozenset(parse_field_entry(part, DAY_OF_MONTH))
    return lambda month: {day for day in allowed if day <= month.last}


def _days_before_month_end(part: str) -> DayRule:
    if part == "LW":
        return _last_weekday
    if part == "L":
        return lambda month: {month.last}
    if not part.startswith("L-"):
        raise CronRefused(f"the day of month '{part[:50]}' is invalid")
    before = _parse_cron_number(part[2:], DAY_OF_MONTH)
    if before < 1:
        raise CronRefused(f"the day of month '{part[:50]}' must be at least one day before the last")
    return lambda month: {month.last - before} if month.last > before else set()


def _last_weekday(month: Month) -> set[int]:
    return {month.last - max(month.weekday(month.last) - FRIDAY, 0)}


def _nearest_weekday(day: int) -> DayRule:
    """Return the rule for the weekday nearest to a day in the same month. A last day that is a Sunday has none."""

    def rule(month: Month) -> set[int]:
        if day > month.last:
            return set()
        move = {SATURDAY: -1 if day > 1 else 2, SUNDAY: 1}.get(month.weekday(day), 0)
        return {day + move} if day + move <= month.last else set()

    return rule


def days_of_week(text: str) -> tuple[DayRule, ...]:
    text = "*" if text == "?" else replace_names(text, DAY_OF_WEEK)
    return tuple(_day_of_week(part) for part in text.split(","))


def _day_of_week(part: str) -> DayRule:
    if part.endswith("L"):
        weekday = _weekday(part[:-1])
        return lambda month: {max(_days_on_weekdays({weekday}, month))}
    if "#" in part:
        before, _, after = part.partition("#")
        return _nth_weekday(_weekday(before), _parse_cron_number(after, DAY_OF_WEEK))
    allowed = frozenset(parse_field_entry(part, DAY_OF_WEEK))
    return lambda month: _days_on_weekdays(allowed, month)


def _weekday(text: str) -> int:
    number = _check_field(text, DAY_OF_WEEK)
    return DAY_OF_WEEK.aliases.get(number, number)


def _nth_weekday(weekday: int, number: int) -> DayRule:
    if number < 1:
        raise CronRefused("the number after # in the day of week must be at least 1")

    def rule(month: Month) -> set[int]:
        day = (weekday - month.first) % 7 + 1 + 7 * (number - 1)
        return {day} if day <= month.last else set()

    return rule


def _days_on_weekdays(weekdays: set[int] | frozenset[int], month: Month) -> set[int]:
    return {day for day in range(1, month.last + 1) if month.weekday(day) in weekdays}


MACROS = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
MAX_LENGTH = 500
YEARS = 41
"""The number of years to search: 29 February has the same weekday again after at most 40 years."""
LAST_YEAR = 9900
EPOCH = datetime(1970, 1, 1)
SECONDS = timedelta(seconds=1)
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression, read."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    days_of_month: tuple[DayRule, ...]
    days_of_week: tuple[DayRule, ...]

    def after(self, moment: int, zone: tzinfo) -> int | None:
        """Return the first match after a time (milliseconds) in the time zone, or None.

        Local times that a clock change skips do not match; local times that it repeats match twice.
        """
        start = _utc_datetime(moment // 1000 + 1)
        while start is not None:
            offset = _offset_at(start, zone)
            local = self._next_local(start + offset)
            if local is None:
                return None
            found = local - offset
            start = _first_offset_change(start, found, zone)
            if start is None:
                return (found - EPOCH) // SECONDS * 1000
        return None

    def _next_local(self, moment: datetime) -> datetime | None:
        """Return the first matching local time at or after this one."""
        for day in self._days_from(moment):
            earliest = (moment.hour, moment.minute, moment.second) if day.date() == moment.date() else (0, 0, 0)
            time = self._time_from(*earliest)
            if time is not None:
                return day.replace(hour=time[0], minute=time[1], second=time[2])
        return None

    def _days_from(self, moment: datetime) -> Iterator[datetime]:
        year, month, first = moment.year, moment.month, moment.day
        while year <= min(moment.year + YEARS, LAST_YEAR):
            if month in self.months:
                yield from (datetime(year, month, day) for day in self._days_in(year, month) if day >= first)
            year, month, first = (year + 1, 1, 1) if month == 12 else (year, month + 1, 1)

    def _days_in(self, year: int, month: int) -> list[int]:
        """Return the days of a month that both day fields allow."""
        this = Month(year, month)
        by_number = set().union(*(rule(this) for rule in self.days_of_month))
        by_name = set().union(*(rule(this) for rule in self.days_of_week))
        return sorted(by_number & by_name)

    def _time_from(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        """Return the first matching time of day at or after this one."""
        if hour in self.hours:
            if minute in self.minutes and (found := _values_from(self.seconds, second)) is not None:
                return hour, minute, found
            if (found := _values_from(self.minutes, minute + 1)) is not None:
                return hour, found, self.seconds[0]
        found = _values_from(self.hours, hour + 1)
        return None if found is None else (found, self.minutes[0], self.seconds[0])


def _values_from(allowed: tuple[int, ...], least: int) -> int | None:
    place = bisect_left(allowed, least)
    return allowed[place] if place < len(allowed) else None


def _utc_datetime(seconds: int) -> datetime | None:
    """Return the time in UTC, not before 1970; None if it cannot be represented."""
    moment = max(seconds, 0)
    return EPOCH + timedelta(seconds=moment) if moment < 250_000_000_000 else None


def _offset_at(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.replace(tzinfo=UTC).astimezone(zone).utcoffset() or timedelta()


def _first_offset_change(start: datetime, end: datetime, zone: tzinfo) -> datetime | None:
    """Return the first second after `start`, up to `end`, with another offset of the zone; None if there is none."""
    if zone is UTC:
        return None
    offset, known = _offset_at(start, zone), start
    while known < end:
        # No zone sets its clocks twice within a week.
        probe = min(known + WEEK, end)
        if _offset_at(probe, zone) != offset:
            return _find_offset_change(known, probe, offset, zone)
        known = probe
    return None


def _find_offset_change(before: datetime, after: datetime, offset: timedelta, zone: tzinfo) -> datetime:
    """Return the first second with another offset, between a time with the offset and a time without it."""
    while after - before > SECONDS:
        middle = before + (after - before) // SECONDS // 2 * SECONDS
        before, after = (middle, after) if _offset_at(middle, zone) == offset else (before, middle)
    return after


@lru_cache(maxsize=10_000)
def parse_cron(text: str) -> Cron:
    """Return the parsed expression."""
    if len(text) > MAX_LENGTH:
        raise CronRefused(f"A cron expression may have at most {MAX_LENGTH} characters.")
    parts = MACROS.get(text.strip().lower(), text).split()
    try:
        if len(parts) != 6:
            said = "second, minute, hour, day of month, month, day of week"
            raise CronRefused(f"it must have six fields ({said}), but has {len(parts)}")
        second, minute, hour, day, month, weekday = parts
        return Cron(
            tuple(sorted(_parse_field(second, SECOND))),
            tuple(sorted(_parse_field(minute, MINUTE))),
            tuple(sorted(_parse_field(hour, HOUR))),
            _parse_field(replace_names(month, MONTH), MONTH),
            days_of_month(day),
            days_of_week(weekday),
        )
    except CronRefused as refused:
        raise CronRefused(f"Invalid cron expression '{text}': {refused.message}.") from None


def _parse_field(text: str, field: CronField) -> frozenset[int]:
    """Return the numbers of a field without day rules."""
    return frozenset(number for part in text.split(",") for number in parse_field_entry(part, field))


MAX_ENTRIES = 100
MAX_JITTER_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class TimetableEntry:
    """One cron expression of a schedule with its time zone, parsed and as written."""

    cron: Cron
    zone: tzinfo
    expression: str
    zone_id: str


@dataclass(frozen=True, slots=True, order=True)
class ScheduleSlot:
    """One point in time of one entry. Entries with the same time follow one another in order."""

    at: int
    entry: int


@dataclass(frozen=True, slots=True)
class Timetable:
    """All slots of a schedule.

    `window_ms`: maximum age of a missed slot that is caught up; None for no limit. `jitter_ms`: the period over which
    the runs of one slot are spread.
    """

    entries: tuple[TimetableEntry, ...]
    starts_at: int | None = None
    ends_at: int | None = None
    catches_up: bool = False
    window_ms: int | None = None
    jitter_ms: int = 0

    def after(self, moment: int) -> ScheduleSlot | None:
        """Return the first slot after a time (milliseconds), or None."""
        if self.starts_at is not None:
            # A slot exactly at the start time counts.
            moment = max(moment, self.starts_at - 1)
        found = ((entry.cron.after(moment, entry.zone), number) for number, entry in enumerate(self.entries))
        first = min((ScheduleSlot(at, number) for at, number in found if at is not None), default=None)
        return None if first is None or (self.ends_at is not None and first.at > self.ends_at) else first

    def following(self, slot: ScheduleSlot, now: int) -> ScheduleSlot | None:
        """Return the slot after one that was handled at `now`. Missed slots are caught up or skipped."""
        for number in range(slot.entry + 1, len(self.entries)):
            entry = self.entries[number]
            if entry.cron.after(slot.at - 1, entry.zone) == slot.at:
                return ScheduleSlot(slot.at, number)
        return self.after(self._from(slot.at, now))

    def _from(self, handled: int, now: int) -> int:
        if not self.catches_up:
            # A slot is not missed before its jitter period has passed.
            return max(handled, now - self.jitter_ms)
        return handled if self.window_ms is None else max(handled, now - self.window_ms - self.jitter_ms - 1)

    def is_too_old(self, slot: ScheduleSlot, now: int) -> bool:
        """Return True if a slot was missed too long ago to be caught up."""
        return self.catches_up and self.window_ms is not None and slot.at < now - self.window_ms - self.jitter_ms

    def runs_at(self, slot: ScheduleSlot, schedule: str) -> int:
        """Return when the run of a slot starts: the slot plus a jitter derived from it."""
        if not self.jitter_ms:
            return slot.at
        digest = sha256(f"{schedule} {slot.at} {slot.entry}".encode()).digest()
        return slot.at + int.from_bytes(digest[:6], "big") % (self.jitter_ms + 1)

    def between(self, first: int, last: int) -> Iterator[ScheduleSlot]:
        """Yield every slot from `first` to `last`, both included."""
        slot = self.after(first - 1)
        while slot is not None and slot.at <= last:
            yield slot
            # No slot is missed if `now` is the slot itself.
            slot = self.following(slot, slot.at)


def parse_timetable(document: Mapping[str, Any]) -> Timetable:
    """Return the timetable of a schedule's document."""
    single = {"cronExpression": document.get("cronExpression"), "zoneId": document.get("zoneId")}
    written = document.get("cronSchedules") or [single]
    if len(written) > MAX_ENTRIES:
        raise Invalid(f"A schedule must have at most {MAX_ENTRIES} cron expressions.")
    window = document.get("catchupWindowSeconds")
    return Timetable(
        tuple(_parse_entry(each) for each in written),
        document.get("scheduleStartTime") or None,
        document.get("scheduleEndTime") or None,
        bool(document.get("runCatchupScheduleInstances")),
        None if window is None else window * 1000,
        min(document.get("jitterSeconds") or 0, MAX_JITTER_SECONDS) * 1000,
    )


def _parse_entry(written: Mapping[str, Any]) -> TimetableEntry:
    expression, zone_id = str(written.get("cronExpression") or ""), str(written.get("zoneId") or "UTC")
    return TimetableEntry(parse_cron(expression), parse_zone(zone_id), expression, zone_id)
