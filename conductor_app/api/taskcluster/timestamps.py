"""Parsing of timestamps: RFC 3339 with a time zone, and any number of digits of a second."""

import re
from datetime import UTC, datetime, timedelta

from .errors import InputValidationError

TIMESTAMP_PATTERN = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def parse_timestamp(text: str, field: str) -> int:
    """Return the time in epoch milliseconds.

    Raises:
        InputValidationError: when the text is no timestamp
        ValueError: never, it is converted.
    """
    found = TIMESTAMP_PATTERN.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        *numbers, fraction, sign, hours, minutes = found.groups()
        year, month, day, hour, minute, second = map(int, numbers)
        # A leap second is the start of the next minute.
        local = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC) + timedelta(seconds=second // 60)
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        time = local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError):
        raise InputValidationError(
            f"Schema Validation Failed!\n  * data.{field}: must be a date-time with a time zone"
        ) from None
    return round(time.timestamp()) * 1000 + int(((fraction or "") + "000")[:3])


def add_one_year(ms: int) -> int:
    """Return the same day of the next calendar year.

    Raises:
        InputValidationError: when that year cannot be represented.
    """
    seconds, milliseconds = divmod(ms, 1000)
    day = datetime.fromtimestamp(seconds, UTC)
    is_leap_day = (day.month, day.day) == (2, 29)
    try:
        later = day.replace(year=day.year + 1, month=3, day=1) if is_leap_day else day.replace(year=day.year + 1)
    except ValueError:
        raise InputValidationError("Schema Validation Failed!\n  * data.deadline: must be earlier") from None
    return round(later.timestamp()) * 1000 + milliseconds
