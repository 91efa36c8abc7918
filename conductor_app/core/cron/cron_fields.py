"""One field of a cron expression: lists, ranges and steps of whole numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import Invalid

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


def parse_field(text: str, field: CronField) -> frozenset[int]:
    """Return the numbers of a field without day rules.

    Raises:
        CronRefused: when the text is invalid.
    """
    return frozenset(number for part in text.split(",") for number in parse_field_entry(part, field))


def parse_field_entry(part: str, field: CronField) -> list[int]:
    """Return the numbers of one list entry: `*`, `5`, `1-5`, `*/2`, `3/10`, `1-20/3`.

    Raises:
        CronRefused: when the entry is invalid.
    """
    span, slash, step = part.partition("/")
    if not slash:
        return _replace_aliases(_parse_range(span, field), field)
    every = parse_cron_number(step, field)
    if every < 1:
        raise CronRefused(f"the step in the {field.name} '{part}' must be at least 1")
    covered = _parse_range(span, field)
    is_open_ended = span != "*" and "-" not in span
    return _replace_aliases(range(covered[0], field.most + 1 if is_open_ended else covered[-1] + 1, every), field)


def _parse_range(span: str, field: CronField) -> range:
    if span == "*":
        return field.all
    first, dash, last = span.partition("-")
    begin = check_field(first, field)
    if not dash:
        return range(begin, begin + 1)
    end = check_field(last, field)
    if field.aliases and begin == field.most:
        # Where a range begins, Sunday is the first day of the week.
        begin = field.least - 1
    if begin > end:
        raise CronRefused(f"the {field.name} '{span}' ends before it begins; ranges do not wrap around")
    return range(begin, end + 1)


def _replace_aliases(found: Sequence[int], field: CronField) -> list[int]:
    return [field.aliases.get(number, number) for number in found]


def check_field(text: str, field: CronField) -> int:
    """Return a number of the field from its number or name.

    Raises:
        CronRefused: when it is out of range.
    """
    number = parse_cron_number(text, field)
    if not field.least <= number <= field.most and number not in field.aliases:
        raise CronRefused(f"the {field.name} '{text}' must be from {field.least} to {field.most}")
    return number


def parse_cron_number(text: str, field: CronField) -> int:
    """Return the number that a text represents.

    Raises:
        CronRefused: when it is no number.
    """
    if not NUMBER.fullmatch(text):
        raise CronRefused(f"the {field.name} '{text[:50]}' is invalid")
    return int(text)


def replace_names(text: str, field: CronField) -> str:
    """Return the text in capitals with its names replaced by numbers."""
    text = text.upper()
    for number, name in enumerate(field.names, 1):
        text = text.replace(name, str(number))
    return text
