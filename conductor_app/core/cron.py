"""A cron expression, and its first match after a time."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from . import days
from .cron_fields import HOUR, MINUTE, MONTH, SECOND, CronRefused, parse_field, replace_names

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
"""Characters of an expression."""
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
    days_of_month: tuple[days.DayRule, ...]
    days_of_week: tuple[days.DayRule, ...]

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
        this = days.Month(year, month)
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
    """Return the parsed expression.

    Raises:
        CronRefused: when the text is invalid, with the reason.
    """
    if len(text) > MAX_LENGTH:
        raise CronRefused(f"A cron expression may have at most {MAX_LENGTH} characters.")
    parts = MACROS.get(text.strip().lower(), text).split()
    try:
        return _parse_fields(parts)
    except CronRefused as refused:
        raise CronRefused(f"Invalid cron expression '{text}': {refused.message}.") from None


def _parse_fields(parts: list[str]) -> Cron:
    if len(parts) != 6:
        said = "second, minute, hour, day of month, month, day of week"
        raise CronRefused(f"it must have six fields ({said}), but has {len(parts)}")
    second, minute, hour, day, month, weekday = parts
    return Cron(
        tuple(sorted(parse_field(second, SECOND))),
        tuple(sorted(parse_field(minute, MINUTE))),
        tuple(sorted(parse_field(hour, HOUR))),
        parse_field(replace_names(month, MONTH), MONTH),
        days.days_of_month(day),
        days.days_of_week(weekday),
    )
