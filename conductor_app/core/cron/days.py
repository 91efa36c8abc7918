"""Which days of a month a cron expression allows: plain numbers, and the rules spelled L, L-3, LW, 15W, 5L and 5#2."""

from calendar import monthrange
from collections.abc import Callable

from .cron_fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    CronRefused,
    check_field,
    parse_cron_number,
    parse_field_entry,
    replace_names,
)

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
    """Return the rules of a day-of-month field."""
    text = "*" if text == "?" else text
    return tuple(_day_of_month(part) for part in text.split(","))


def _day_of_month(part: str) -> DayRule:
    if part.startswith("L"):
        return _days_before_month_end(part)
    if part.endswith("W"):
        return _nearest_weekday(check_field(part[:-1], DAY_OF_MONTH))
    allowed = frozenset(parse_field_entry(part, DAY_OF_MONTH))
    return lambda month: {day for day in allowed if day <= month.last}


def _days_before_month_end(part: str) -> DayRule:
    if part == "LW":
        return _last_weekday
    if part == "L":
        return lambda month: {month.last}
    if not part.startswith("L-"):
        raise CronRefused(f"the day of month '{part[:50]}' is invalid")
    before = parse_cron_number(part[2:], DAY_OF_MONTH)
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
    """Return the rules of a day-of-week field."""
    text = "*" if text == "?" else replace_names(text, DAY_OF_WEEK)
    return tuple(_day_of_week(part) for part in text.split(","))


def _day_of_week(part: str) -> DayRule:
    if part.endswith("L"):
        weekday = _weekday(part[:-1])
        return lambda month: {max(_days_on_weekdays({weekday}, month))}
    if "#" in part:
        before, _, after = part.partition("#")
        return _nth_weekday(_weekday(before), parse_cron_number(after, DAY_OF_WEEK))
    allowed = frozenset(parse_field_entry(part, DAY_OF_WEEK))
    return lambda month: _days_on_weekdays(allowed, month)


def _weekday(text: str) -> int:
    number = check_field(text, DAY_OF_WEEK)
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
