"""Formats of numbers, durations and times, and the ranges of time that charts show.

Django's own formats stay those of machines, because a number in a template may be the geometry of a drawing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from django.db import connections
from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext, gettext_lazy, pgettext

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    LazyText = _StrPromise
else:
    LazyText = Promise
"""A text that is translated each time it is shown. The full type is one of Django's stubs only."""

if TYPE_CHECKING:
    pass
else:
    pass


def format_count(count: int) -> str:
    """Return a count with separated thousands."""
    return f"{count:,}".replace(",", pgettext("between thousands", ","))


def format_decimal(number: float, decimals: int = 1) -> str:
    """Return a number with a fixed number of decimals, and with separated thousands."""
    whole, _point, rest = f"{number:,.{decimals}f}".partition(".")
    whole = whole.replace(",", pgettext("between thousands", ","))
    return f"{whole}{pgettext('between the whole and the tenths of a number', '.')}{rest}"


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


def format_task_name(ref: str, iteration_path: str) -> str:
    """Return the name of a task in sentences: `scan, iteration 2`; `2.1` in a loop of a loop."""
    return gettext("%(ref)s, iteration %(number)s") % {"ref": ref, "number": iteration_path} if iteration_path else ref


def format_timestamp(moment: int) -> str:
    """Format a time in the reader's time zone, with its UTC offset."""
    return format_with_offset(datetime.fromtimestamp(moment / 1000, UTC).astimezone(get_current_timezone()))


def format_precise_time(moment: int, now: int) -> str:
    """Format a time in the reader's time zone with milliseconds, without the date if it is the day of `now`."""
    zone = get_current_timezone()
    at, today = (datetime.fromtimestamp(each / 1000, UTC).astimezone(zone) for each in (moment, now))
    text = f"{at:%H:%M:%S}.{moment % 1000:03}"
    return text if at.date() == today.date() else f"{at:%Y-%m-%d} {text}"


def format_near_time(moment: int, now: int) -> str:
    """Format a time in the reader's time zone to the minute, without the date if it is the day of `now`."""
    zone = get_current_timezone()
    at, today = (datetime.fromtimestamp(each / 1000, UTC).astimezone(zone) for each in (moment, now))
    return f"{at:%H:%M}" if at.date() == today.date() else f"{at:%Y-%m-%d %H:%M}"


def format_with_offset(moment: datetime) -> str:
    """Format a time with its UTC offset."""
    zone = "UTC" if not moment.utcoffset() else f"{moment:%z}"
    return f"{moment:%Y-%m-%d %H:%M:%S} {zone}"


def _format_units(spent: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(spent, large)
    return f"{whole} {large_name} {rest // small} {small_name}" if rest // small else f"{whole} {large_name}"


HOUR_RANGE, DAY_RANGE, WEEK_RANGE, MONTH_RANGE = "1h", "24h", "7d", "30d"
LENGTHS = {HOUR_RANGE: (60, MINUTE), DAY_RANGE: (24, HOUR), WEEK_RANGE: (56, 3 * HOUR), MONTH_RANGE: (30, DAY)}
"""Number and length of the bars of each range."""
LABELS = {
    HOUR_RANGE: gettext_lazy("1 h"),
    DAY_RANGE: gettext_lazy("24 h"),
    WEEK_RANGE: gettext_lazy("7 d"),
    MONTH_RANGE: gettext_lazy("30 d"),
}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range of `count` bars of `step` milliseconds each, from `since` on. It includes the current time."""

    name: str
    since: int
    step: int
    count: int

    @classmethod
    def aligned(cls, name: str, now: int) -> Self:
        """Return the range whose bars begin on full minutes, hours or days in UTC. The last bar is not complete yet."""
        count, step = LENGTHS[name]
        return cls(name, now - now % step - (count - 1) * step, step, count)

    @property
    def until(self) -> int:
        """Return the end of the last bar, which does not belong to the range."""
        return self.since + self.count * self.step

    @property
    def length_ms(self) -> int:
        return self.count * self.step

    def place(self, moment: int) -> int | None:
        """Return the number of the bar of a time, or None if it is outside of the range."""
        place = (moment - self.since) // self.step
        return place if 0 <= place < self.count else None

    def starts(self) -> list[int]:
        """Return the time at which each bar begins."""
        return [self.since + place * self.step for place in range(self.count)]


def count_by_bar(rows: QuerySet[Any, Any], time_range: TimeRange, groups: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """Count rows by the bar of their time and by other columns: tuples of bar, groups and count.

    `rows`: `values()` with the time first and the groups behind it, limited by a slice.
    """
    sql, params = rows.query.sql_with_params()
    moment = next(iter(rows.query.values_select))
    columns = [f"({moment} - {time_range.since:d}) / {time_range.step:d}", *groups]
    places = ", ".join(str(place) for place in range(1, len(columns) + 1))
    with connections[rows.db].cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)}, COUNT(*) FROM ({sql}) AS counted GROUP BY {places}", params)
        return cursor.fetchall()
