"""Spans of time as people say them: `3.2 s`, `12 min 5 s`, `2 d 4 h`; and moments on their reader's clock."""

from datetime import UTC, datetime

from django.utils.timezone import get_current_timezone
from django.utils.translation import pgettext

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


def format_duration(milliseconds: int) -> str:
    """A span in the two largest units that matter."""
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
    """How long ago something was, or when it will be: nobody counts the tenths of a second on a page."""
    spent = max(int(milliseconds), 0)
    return f"{spent // SECOND} s" if spent < MINUTE else format_duration(spent)


def format_timestamp(moment: int) -> str:
    """A moment in the reader's zone, with its offset."""
    return format_with_offset(datetime.fromtimestamp(moment / 1000, UTC).astimezone(get_current_timezone()))


def format_with_offset(moment: datetime) -> str:
    """A moment with the offset of its clock."""
    zone = "UTC" if not moment.utcoffset() else f"{moment:%z}"
    return f"{moment:%Y-%m-%d %H:%M:%S} {zone}"


def format_decimal(number: float) -> str:
    """A number with one decimal, as the reader's language writes it."""
    return f"{number:.1f}".replace(".", pgettext("between the whole and the tenths of a number", "."))


def _format_units(spent: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(spent, large)
    return f"{whole} {large_name} {rest // small} {small_name}" if rest // small else f"{whole} {large_name}"
