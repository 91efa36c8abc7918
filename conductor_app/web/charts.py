"""Charts as SVG. Geometry is set in attributes because the content security policy forbids inline styles.

A `TrendChart` shows counts over a range of time, with axes, markers and a table of its values, and a `DurationChart`
percentiles: `{% include "ops/web/chart.html" %}`. `static/ops/chart.js` shows the row of the table beside the pointer.

Zoom links of a timeline.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _

from ..utils.formatting import (
    DAY,
    DAY_RANGE,
    HOUR,
    HOUR_RANGE,
    LABELS,
    LENGTHS,
    MINUTE,
    MONTH_RANGE,
    SECOND,
    TimeRange,
    format_duration,
)
from ..utils.time_scale import TimeScale
from .badges import format_count

LAST_LABEL = 0.86
"""The share of the width from which on a label does not fit on narrow screens. They leave it out."""
LAST_TIME = 0.95
"""The share of the width up to which a time fits before the right edge."""
PLOT_HEIGHT, TOP = 120, 16
"""Heights of the bars and of the space above them, in pixels."""
MARKER_GAP = 5.0
"""Minimum distance between the numbers of two markers, in percent of the width. Closer ones share a number."""
MAX_MARKERS = 12


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """The values of one color, one per bar.

    `query`: added to the address of a bar for the rows of this color; None if no list has exactly these rows.
    """

    label: str
    tone: str
    values: Sequence[int]
    query: str | None = ""

    @property
    def total(self) -> int:
        return sum(self.values)


@dataclass(frozen=True, slots=True)
class ChartMarker:
    """Something that happened at a time, such as a new version."""

    at: int
    label: str


@dataclass(frozen=True, slots=True)
class ChartThreshold:
    """A value that is drawn as a line."""

    value: int
    label: str


@dataclass(frozen=True, slots=True)
class TrendChart:
    """Stacked bars over a range of time.

    `links`: the address of the rows behind each bar; empty if there is none. `note`: what the reader must know.
    `has_totals`: whether the values of a series may be added up.
    """

    height: ClassVar[int] = PLOT_HEIGHT + TOP
    is_stacked: ClassVar[bool] = True
    label: str
    time_range: TimeRange
    series: Sequence[ChartSeries]
    markers: Sequence[ChartMarker] = ()
    threshold: ChartThreshold | None = None
    has_totals: bool = True
    links: Sequence[str] = ()
    note: str = ""
    ranges: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def is_empty(self) -> bool:
        return self.threshold is None and not any(series.total for series in self.series)

    @property
    def legend(self) -> list[ChartSeries]:
        """Return the series of the legend: none if the title says what the only one is, and its total is not shown."""
        is_named = len(self.series) > 1 or self.has_totals or self.series[0].label != self.label
        return list(self.series) if is_named else []

    @property
    def gutter(self) -> str:
        """Return the class of the space for the labels of the vertical axis, by the length of the longest."""
        length = max(len(tick["label"]) for tick in self.ticks)
        return "" if length <= 3 else "medium" if length <= 6 else "broad"

    @property
    def highest(self) -> int:
        """Return the value at the top of the axis."""
        heights = [self._height_of(values) for values in zip(*(series.values for series in self.series), strict=True)]
        limit = self.threshold.value if self.threshold else 1
        return self._round_up(max([*heights, limit, 1]))

    def format_value(self, value: int) -> str:
        """Return a value as the axis and the table show it."""
        return format_count(value)

    def _height_of(self, values: Sequence[int]) -> int:
        """Return the height of a bar."""
        return sum(values)

    def _round_up(self, value: int) -> int:
        """Return the next number for the top of the axis."""
        return _round_up(value)

    @property
    def threshold_y(self) -> str:
        """Return the place of the threshold."""
        return self._y(self.threshold.value) if self.threshold else ""

    @property
    def ticks(self) -> list[dict[str, Any]]:
        """Return the lines of the vertical axis."""
        highest = self.highest
        values = [highest] if highest == 1 else [highest, highest // 2]
        return [{"y": self._y(value), "label": self.format_value(value)} for value in values]

    @property
    def times(self) -> list[dict[str, Any]]:
        """Return the labels of the horizontal axis."""
        count, starts = self.time_range.count, self.time_range.starts()
        places = _label_places(self.time_range)
        return [
            {
                "x": _percent(place / count),
                "label": date_format(_local(starts[place]), "H:i" if self.time_range.step <= HOUR else "j M"),
                "minor": number % 2 == 1 or place > LAST_LABEL * count,
            }
            for number, place in enumerate(places)
        ]

    @property
    def bars(self) -> list[dict[str, Any]]:
        """Return what is drawn for each bar of the range."""
        return list(self._bars())

    def _bars(self) -> Iterator[dict[str, Any]]:
        count, highest = self.time_range.count, self.highest
        width = 100 / count
        for place, (start, link) in enumerate(zip_longest(self.time_range.starts(), self.links[:count], fillvalue="")):
            left, floor, parts = place * width, float(self.height), []
            for series in self.series:
                if series.values[place]:
                    height = max(round(PLOT_HEIGHT * series.values[place] / highest, 1), 2)
                    floor = (floor if self.is_stacked else self.height) - height
                    part = _part(series.tone, left + width * 0.12, width * 0.76, floor, height)
                    is_listed = link and series.query is not None
                    parts.append(part | {"link": f"{link}&{series.query}".rstrip("&") if is_listed else ""})
            yield {
                "x": _percent(left / 100),
                "width": _percent(width / 100),
                "parts": parts,
                "link": link,
                "time": format_bar_time(int(start), self.time_range),
                "values": [self.format_value(series.values[place]) for series in self.series],
                "markers": [marker.label for marker in self.markers if self.time_range.place(marker.at) == place],
                "is_empty": not any(series.values[place] for series in self.series),
            }

    @property
    def shown_markers(self) -> list[dict[str, Any]]:
        """Return the markers inside the range, with the time and the labels of each for the list below the chart."""
        inside = [marker for marker in self.markers if self.time_range.place(marker.at) is not None][-MAX_MARKERS:]
        found: list[dict[str, Any]] = []
        for marker in sorted(inside, key=lambda marker: marker.at):
            place = 100 * (marker.at - self.time_range.since) / self.time_range.length_ms
            if not found or place - found[-1]["place"] >= MARKER_GAP:
                time = format_bar_time(marker.at, self.time_range)
                found.append({"place": place, "x": _percent(place / 100), "time": time, "labels": []})
            found[-1]["labels"].append(marker.label)
        return found

    def _y(self, value: int) -> str:
        return f"{TOP + PLOT_HEIGHT * (1 - value / self.highest):.1f}"


DURATION_TOPS = (*(SECOND * n // 1000 for n in (1, 2, 4, 10, 20, 40, 100, 200, 400)),
                 *(unit * n for unit in (SECOND, MINUTE) for n in (1, 2, 4, 10, 20, 40)),
                 *(HOUR * n for n in (1, 2, 4, 8, 12)), *(DAY * n for n in (1, 2, 4, 10, 20)))  # fmt: skip
"""The durations at the top of an axis, in milliseconds: half of each is a short text, too."""


@dataclass(frozen=True, slots=True)
class DurationChart(TrendChart):
    """Percentiles of durations in milliseconds over a range of time, the highest first. A bar without any has 0."""

    is_stacked: ClassVar[bool] = False
    has_totals: bool = False

    def format_value(self, value: int) -> str:
        """Return a duration."""
        return format_duration(value) if value else "–"

    def _height_of(self, values: Sequence[int]) -> int:
        return max(values)

    def _round_up(self, value: int) -> int:
        return next((top for top in DURATION_TOPS if top >= value), -(-value // (10 * DAY)) * 10 * DAY)


def _label_places(time_range: TimeRange) -> list[int]:
    """Return the bars that have a label: five days apart, the first of each day, or those at round times of the day."""
    step, count = time_range.step, time_range.count
    if step >= DAY:
        return list(range(0, count, -(-count // 6)))
    times = [_local(start) for start in time_range.starts()]
    if step > HOUR:
        return [place for place in range(1, count) if times[place].date() != times[place - 1].date()]
    distance = count * step // (6 * MINUTE)
    minutes = [time.hour * 60 + time.minute for time in times]
    return [place for place in range(count) if minutes[place] % distance == 0 and place <= LAST_TIME * count]


def chosen_range(request: HttpRequest, default: str = DAY_RANGE) -> str:
    """Return the name of the range that the address selects."""
    name = request.GET.get("range", "")
    return name if name in LABELS else default


def fitting_range(age_ms: int) -> str:
    """Return the name of the shortest range that includes everything since an age."""
    return next((name for name, (count, step) in LENGTHS.items() if age_ms < (count - 1) * step), MONTH_RANGE)


def range_of_data(oldest: int, newest: int, now: int) -> str:
    """Return the name of the range for data between two times: shorter than a day only if it has all of them."""
    whole = fitting_range(now - oldest)
    return whole if whole == HOUR_RANGE else max(fitting_range(now - newest), DAY_RANGE, key=list(LENGTHS).index)


def range_links(request: HttpRequest, current: str) -> list[dict[str, Any]]:
    """Return the links to the ranges. Other parts of the address stay."""
    query = request.GET.copy()
    query.pop("rev", None)
    links = []
    for name, label in LABELS.items():
        query["range"] = name
        links.append({"label": label, "address": f"?{query.urlencode()}", "is_current": name == current})
    return links


def format_bar_time(moment: int, time_range: TimeRange) -> str:
    """Return the beginning of a bar."""
    return date_format(_local(moment), "j M" if time_range.step >= DAY else "j M, H:i")


def _local(moment: int) -> datetime:
    return datetime.fromtimestamp(moment / 1000, UTC).astimezone(get_current_timezone())


def _part(css_class: str, left: float, width: float, top: float, height: float) -> dict[str, Any]:
    return {
        "css": css_class,
        "x": _percent(left / 100),
        "width": _percent(width / 100),
        "y": f"{top:.1f}",
        "height": f"{height:.1f}",
    }


def _percent(share: float) -> str:
    return f"{100 * share:.3f}%"


def _round_up(value: int) -> int:
    """Return the next number for the top of an axis, such as 1, 2, 4, 10, 20, 40 or 100."""
    if value <= 2:
        return value
    power = 10 ** (len(str(value)) - 1)
    steps = (factor * power for factor in (1, 2, 4, 6, 8, 10))
    return next(step for step in steps if step >= value)


def sparkline(values: Sequence[int], label: str, css_class: str = "") -> SafeString:
    """Return one bar per value, scaled to the highest value."""
    highest = max([*values, 1])
    bars = [
        (css_class if value else "faint", place * 10, 100 - height, height)
        for place, value in enumerate(values)
        for height in [max(round(96 * value / highest), 8) if value else 4]
    ]
    rects = format_html_join("", '<rect class="{}" x="{}" y="{}" width="8" height="{}"></rect>', bars)
    return format_html(
        '<svg class="spark" viewBox="0 0 {} 100" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        len(values) * 10,
        f"{label}: {', '.join(map(str, values))}",
        rects,
    )


def zoom_links(scale: TimeScale, full_scale: TimeScale, address: Callable[..., str]) -> dict[str, Any]:
    """Return the links to zoom in, out and fit, and the points that a drag over the axis needs.

    A point is a position in percent and a time in milliseconds since the start: `0.00:0,47.20:19000,100.00:640000`.
    `address`: builds the address of the page with other `from` and `to` parameters, in milliseconds since the start of
    the whole.
    """
    origin = full_scale.begin
    begin, end = scale.begin - origin, scale.end - origin
    quarter = (end - begin) // 4
    return {
        "points": ",".join(f"{percent:.2f}:{moment - origin}" for percent, moment in scale.points()),
        "in": address(**{"from": scale.moment_at(25) - origin, "to": scale.moment_at(75) - origin}) if quarter else "",
        "out": address(**{"from": max(begin - quarter, 0), "to": end + quarter}),
        "fit": address(**{"from": None, "to": None}),
    }


def build_markers(builds: Mapping[str, int]) -> Sequence[ChartMarker]:
    """Return the first use of each build, except for the oldest builds: what was used before them is not known."""
    oldest = min(builds.values(), default=0)
    return [ChartMarker(at, _("build %(build)s") % {"build": build}) for build, at in builds.items() if at > oldest]
