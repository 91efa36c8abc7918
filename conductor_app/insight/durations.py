"""Formats for durations, such as `3.2 s`, `12 min 5 s` and `2 d 4 h`, and for times in the reader's time zone."""

from datetime import UTC, datetime

from django.utils.timezone import get_current_timezone

from .numbers import format_decimal

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


def format_duration(milliseconds: int) -> str:
    """Format a duration in its two largest units."""
    spent = max(int(milliseconds), 0)
    if spent < SECOND:
        return f"{spent} ms"
    if spent < MINUTE:
        return f"{format_decimal(spent // 100 / 10)} s"
    if spent < HOUR:
        return _format_units(spent, MINUTE, "min", SECOND, "s")
    if spent < DAY:
        return _format_units(spent, HOUR, "h", MINUTE, "min")
    return _format_units(spent, DAY, "d", HOUR, "h")


def format_elapsed(milliseconds: int) -> str:
    """Format the time until or since an event, without tenths of a second."""
    spent = max(int(milliseconds), 0)
    return f"{spent // SECOND} s" if spent < MINUTE else format_duration(spent)


def format_timestamp(moment: int) -> str:
    """Format a time in the reader's time zone, with its UTC offset."""
    return format_with_offset(datetime.fromtimestamp(moment / 1000, UTC).astimezone(get_current_timezone()))


def format_precise_time(moment: int, now: int) -> str:
    """Format a time in the reader's time zone with milliseconds, without the date if it is the day of `now`."""
    zone = get_current_timezone()
    at, today = (datetime.fromtimestamp(each / 1000, UTC).astimezone(zone) for each in (moment, now))
    text = f"{at:%H:%M:%S}.{moment % 1000:03}"
    return text if at.date() == today.date() else f"{at:%Y-%m-%d} {text}"


def format_with_offset(moment: datetime) -> str:
    """Format a time with its UTC offset."""
    zone = "UTC" if not moment.utcoffset() else f"{moment:%z}"
    return f"{moment:%Y-%m-%d %H:%M:%S} {zone}"


def _format_units(spent: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(spent, large)
    return f"{whole} {large_name} {rest // small} {small_name}" if rest // small else f"{whole} {large_name}"
