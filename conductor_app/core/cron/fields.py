"""One field of a cron expression: lists, ranges and steps of whole numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import Invalid

NUMBER = re.compile(r"\d{1,9}", re.ASCII)


class CronRefused(Invalid):
    """The cron expression cannot be read."""


@dataclass(frozen=True, slots=True)
class Field:
    """What a field may hold. `names`: words for its numbers, in order, the first one for 1."""

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

SECOND, MINUTE, HOUR = Field("second", 0, 59), Field("minute", 0, 59), Field("hour", 0, 23)
DAY_OF_MONTH = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
# Sunday is 7, and 0 as well.
DAY_OF_WEEK = Field("day of week", 1, 7, DAYS, {0: 7})


def numbers(text: str, field: Field) -> frozenset[int]:
    """The numbers that a field without day rules allows."""
    return frozenset(number for part in text.split(",") for number in part_of(part, field))


def part_of(part: str, field: Field) -> list[int]:
    """The numbers of one entry of a list: `*`, `5`, `1-5`, `*/2`, `3/10`, `1-20/3`."""
    span, slash, step = part.partition("/")
    if not slash:
        return _replace_aliases(_span(span, field), field)
    every = whole(step, field)
    if every < 1:
        raise CronRefused(f"the step in the {field.name} '{part}' must be at least 1")
    covered = _span(span, field)
    is_open_ended = span != "*" and "-" not in span
    return _replace_aliases(range(covered[0], field.most + 1 if is_open_ended else covered[-1] + 1, every), field)


def _span(span: str, field: Field) -> range:
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


def _replace_aliases(found: Sequence[int], field: Field) -> list[int]:
    return [field.aliases.get(number, number) for number in found]


def check_field(text: str, field: Field) -> int:
    """A number of the field, or one of its aliases."""
    number = whole(text, field)
    if not field.least <= number <= field.most and number not in field.aliases:
        raise CronRefused(f"the {field.name} '{text}' is not from {field.least} to {field.most}")
    return number


def whole(text: str, field: Field) -> int:
    """The number that a text spells."""
    if not NUMBER.fullmatch(text):
        raise CronRefused(f"the {field.name} '{text[:50]}' is not understood")
    return int(text)


def without_names(text: str, field: Field) -> str:
    """The text in capitals, with numbers for its names."""
    text = text.upper()
    for number, name in enumerate(field.names, 1):
        text = text.replace(name, str(number))
    return text
