"""Scale of a timeline: times as positions in percent of the width. Long idle times take little of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from .formatting import format_duration, format_elapsed

MIN_WIDTH_PERCENT = 0.35
"""Minimum width of a segment in percent, so that it remains visible and clickable."""
MIN_TICK_DISTANCE, TICK_CHARACTER = 8, 1.4
"""Percent between two ticks, and of each character of the label between them."""
END_CHARACTER = 1.8
"""Percent of each character before the end of the axis, where a label would be cut off."""
STEPS_MS = [
    *(n * 10**k for k in range(3) for n in (1, 2, 5)),
    *(n * unit for unit in (1_000, 60_000) for n in (1, 2, 5, 10, 15, 30)),
    *(h * 3_600_000 for h in (1, 2, 6, 12)),
    *(d * 86_400_000 for d in (1, 2, 5, 10, 20, 50, 100)),
]
LABEL_MARGIN = 28
"""Percent of the axis that half the label of a gap needs, on a phone."""
GAP_PERCENT = 6
"""Width of an idle time that is collapsed."""
MAX_GAPS = 8
MIN_GAP_MS = 10_000
MIN_GAP_SHARE = 0.15
"""An idle time is collapsed if it is at least this long, and this share of the time that is not idle."""
Stretch = tuple[int, int]
"""Begin and end of a time."""


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A tick of the axis."""

    left: str
    label: str


@dataclass(frozen=True, slots=True)
class AxisGap:
    """A collapsed idle time on the axis. `anchor`, `at`: where its label is: at its start, middle or end."""

    left: str
    width: str
    at: str
    anchor: str
    label: str


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Conversion of times to positions in percent of the width.

    `gaps`: idle times that are collapsed, oldest first. `lives`: when the run was open, oldest first; empty if it was
    never reopened.
    """

    begin: int
    end: int
    gaps: tuple[Stretch, ...] = ()
    lives: tuple[Stretch, ...] = ()

    def overlaps(self, begin: int, end: int) -> bool:
        """Return True if any part of a span is visible."""
        return end >= self.begin and begin <= self.end

    def percent_of(self, moment: int) -> float:
        at = min(max(moment, self.begin), self.end)
        drawn = float(at - self.begin)
        for begin, end in self.gaps:
            if at > begin:
                drawn -= (min(at, end) - begin) * (1 - self._gap_ms / (end - begin))
        return round(100 * drawn / self._drawn_ms, 6)

    def moment_at(self, percent: float) -> int:
        """Return the time at a position."""
        points = self.points()
        for (left, begin), (right, end) in pairwise(points):
            if percent <= right:
                return begin + round((end - begin) * (percent - left) / max(right - left, 0.001))
        return self.end

    def points(self) -> list[tuple[float, int]]:
        """Return positions and their times, between which the scale is linear."""
        moments = [self.begin, *(moment for gap in self.gaps for moment in gap), self.end]
        return [(self.percent_of(moment), moment) for moment in moments]

    @property
    def _idle_ms(self) -> int:
        return sum(end - begin for begin, end in self.gaps)

    @property
    def _drawn_ms(self) -> float:
        busy = max(self.end - self.begin - self._idle_ms, 1)
        return busy / (1 - len(self.gaps) * GAP_PERCENT / 100)

    @property
    def _gap_ms(self) -> float:
        return self._drawn_ms * GAP_PERCENT / 100

    def extent(self, begin: int, end: int) -> tuple[str, str]:
        """Return left edge and width of a span. A short span is widened, but not beyond the right edge."""
        left, right = self.percent_of(begin), self.percent_of(end)
        width = max(right - left, MIN_WIDTH_PERCENT)
        return f"{min(left, 100 - width):.2f}%", f"{width:.2f}%"

    def ticks(self, origin: int | None = None, most: int = 6) -> list[AxisTick]:
        """Return ticks at round durations since `origin`, by default the start of the scale. Gaps have none."""
        since = self.begin if origin is None else origin
        length = self.end - self.begin - self._idle_ms
        step = next((step for step in STEPS_MS if length / step <= most), max(length, 1))
        found: list[AxisTick] = []
        free = 0.0
        for begin, end in self._stretches():
            for at in range(-(-(begin - since) // step) * step, end - since + 1, step):
                percent = self.percent_of(since + at)
                label = (format_duration if at % 1000 else format_elapsed)(at) if at else "0"
                # After a minute, labels have whole seconds: ticks closer together would have the same one.
                if free <= percent < 98 - END_CHARACTER * len(label) and not (found and found[-1].label == label):
                    found.append(AxisTick(f"{percent:.2f}%", label))
                    free = percent + max(MIN_TICK_DISTANCE, TICK_CHARACTER * len(label))
        return found

    def axis_gaps(self) -> list[AxisGap]:
        """Return the collapsed idle times with their durations."""
        found = []
        for begin, end in self.gaps:
            left, right = self.percent_of(begin), self.percent_of(end)
            anchor, at = _label_place(left, right)
            found.append(
                AxisGap(f"{left:.2f}%", f"{right - left:.2f}%", f"{at:.2f}%", anchor, format_duration(end - begin))
            )
        return found

    def _stretches(self) -> Iterator[Stretch]:
        """Yield the times between the gaps. The first one may be empty, so that the axis has its 0."""
        begin = self.begin
        for gap in self.gaps:
            if gap[0] >= begin:
                yield begin, gap[0]
            begin = gap[1]
        yield begin, self.end


def _label_place(left: float, right: float) -> tuple[str, float]:
    """Return where the label of a gap is, so that the edges of the chart do not cut it off."""
    middle = (left + right) / 2
    if middle < LABEL_MARGIN:
        return "start", left
    return ("end", right) if middle > 100 - LABEL_MARGIN else ("middle", middle)


def zoom_scale(whole: TimeScale, begin: int | None, end: int | None) -> TimeScale:
    """Return a part of a scale, given in milliseconds since its start, or the whole scale if the part is invalid."""
    if begin is None or end is None or end - begin < 2:
        return whole
    last = whole.end + (whole.end - whole.begin)
    return TimeScale(whole.begin + max(begin, 0), min(whole.begin + end, last), (), whole.lives)


def collapse_idle(scale: TimeScale, busy: Iterable[Stretch]) -> TimeScale:
    """Return a scale on which long times outside the busy ones are collapsed. The busy times may overlap."""
    idle = idle_stretches(scale, busy)
    active = scale.end - scale.begin - sum(end - begin for begin, end in idle)
    least = max(MIN_GAP_MS, active * MIN_GAP_SHARE)
    long = sorted((gap for gap in idle if gap[1] - gap[0] >= least), key=lambda gap: gap[0] - gap[1])[:MAX_GAPS]
    return replace(scale, gaps=tuple(sorted(long)))


def idle_stretches(scale: TimeScale, busy: Iterable[Stretch]) -> list[Stretch]:
    """Return the times of a scale that are not busy; none if nothing is busy."""
    merged = merge_stretches(part for each in busy if (part := overlap(each, (scale.begin, scale.end))))
    if not merged:
        return []
    edges = [scale.begin, *(moment for each in merged for moment in each), scale.end]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [(begin, end) for begin, end in pairs if end > begin]


def merge_stretches(stretches: Iterable[Stretch], tolerance: int = 0) -> list[Stretch]:
    """Return the union of times, oldest first. Times with less than `tolerance` between them become one."""
    merged: list[Stretch] = []
    for begin, end in sorted(stretches):
        if merged and begin <= merged[-1][1] + tolerance:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def overlap(one: Stretch, other: Stretch) -> Stretch | None:
    """Return the time that two times share, or None. A moment at an edge counts."""
    begin, end = max(one[0], other[0]), min(one[1], other[1])
    return (begin, end) if begin <= end else None
