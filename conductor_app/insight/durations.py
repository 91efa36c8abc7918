"""Spans of time as people say them: `3.2 s`, `12 min 5 s`, `2 d 4 h`; and moments on their reader's clock."""

from datetime import UTC, datetime

from django.utils.timezone import get_current_timezone
from django.utils.translation import pgettext

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


def span(milliseconds: int) -> str:
    """A span in the two largest units that matter."""
    spent = max(int(milliseconds), 0)
    if spent < SECOND:
        return f"{spent} ms"
    if spent < MINUTE:
        return f"{decimal(spent // 100 / 10)} s"
    if spent < HOUR:
        return _pair(spent, MINUTE, "min", SECOND, "s")
    if spent < DAY:
        return _pair(spent, HOUR, "h", MINUTE, "min")
    return _pair(spent, DAY, "d", HOUR, "h")


def elapsed(milliseconds: int) -> str:
    """How long ago something was, or when it will be: nobody counts the tenths of a second on a page."""
    spent = max(int(milliseconds), 0)
    return f"{spent // SECOND} s" if spent < MINUTE else span(spent)


def exact(moment: int) -> str:
    """A moment in the reader's zone, with its offset."""
    return in_words(datetime.fromtimestamp(moment / 1000, UTC).astimezone(get_current_timezone()))


def in_words(moment: datetime) -> str:
    """A moment with the offset of its clock."""
    zone = "UTC" if not moment.utcoffset() else f"{moment:%z}"
    return f"{moment:%Y-%m-%d %H:%M:%S} {zone}"


def decimal(number: float) -> str:
    """A number with one decimal, as the reader's language writes it."""
    return f"{number:.1f}".replace(".", pgettext("between the whole and the tenths of a number", "."))


def _pair(spent: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(spent, large)
    return f"{whole} {large_name} {rest // small} {small_name}" if rest // small else f"{whole} {large_name}"
