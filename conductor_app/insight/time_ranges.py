"""Ranges of time that charts show, divided into bars of equal length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from django.db import connection
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from .durations import DAY, HOUR, MINUTE

HOUR_RANGE, DAY_RANGE, WEEK_RANGE, MONTH_RANGE = "1h", "24h", "7d", "30d"
LENGTHS = {
    HOUR_RANGE: (60, MINUTE),
    DAY_RANGE: (24, HOUR),
    WEEK_RANGE: (56, 3 * HOUR),
    MONTH_RANGE: (30, DAY),
}
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

    def shifted(self, by_ms: int) -> "TimeRange":
        """Return the range that lies earlier by a duration."""
        return TimeRange(self.name, self.since - by_ms, self.step, self.count)

    def place(self, moment: int) -> int | None:
        """Return the number of the bar of a time, or None if it is outside of the range."""
        place = (moment - self.since) // self.step
        return place if 0 <= place < self.count else None

    def starts(self) -> list[int]:
        """Return the time at which each bar begins."""
        return [self.since + place * self.step for place in range(self.count)]


def count_by_bar(rows: QuerySet, time_range: TimeRange, groups: Sequence[str] = ()) -> list[tuple]:
    """Count rows by the bar of their time and by other columns: tuples of bar, groups and count.

    `rows`: `values()` with the time first and the groups behind it, limited by a slice.
    """
    sql, params = rows.query.sql_with_params()
    moment = next(iter(rows.query.values_select))
    columns = [f"({moment} - {time_range.since:d}) / {time_range.step:d}", *groups]
    places = ", ".join(str(place) for place in range(1, len(columns) + 1))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)}, COUNT(*) FROM ({sql}) AS counted GROUP BY {places}", params)
        return cursor.fetchall()
