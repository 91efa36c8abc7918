"""Timeline of a run: one row per task, with its attempts as segments in percent of the whole span."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from django.utils.translation import gettext as _

from ...models import Attempt, Run, Task
from ..definitions.duration_baselines import TypicalDuration
from ..durations import format_duration

WAIT, DELAY, GAP, WORK = "wait", "delay", "gap", "work"
MIN_WIDTH_PERCENT = 0.35
"""Minimum width of a segment in percent, so that it remains visible and clickable."""
END_MARGIN = 0.15
"""Share of the axis before its end that gets no tick, because its label would be cut off."""
STEPS = [n * 10**k for k in range(12) for n in (1, 2, 5)]
STEPS_MS = [
    *(s for s in STEPS if s < 60_000),
    *(m * 60_000 for m in (1, 2, 5, 10, 20, 30)),
    *(h * 3_600_000 for h in (1, 2, 4, 6, 12)),
    *(d * 86_400_000 for d in (1, 2, 5, 10, 20, 50, 100)),
]


@dataclass(frozen=True, slots=True)
class TimelineSegment:
    """A segment of a task: delay before it is due, gap before a retry, wait in the queue, or work."""

    kind: str
    status: str
    left: str
    width: str
    title: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task with its attempts, oldest first."""

    task: Task
    attempts: tuple[Attempt, ...]
    segments: tuple[TimelineSegment, ...]
    usual: TimelineSegment | None = None
    """Typical end of the task: from the median to the 95th percentile."""

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A tick of the axis."""

    left: str
    label: str


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Conversion of times to positions in percent of the width."""

    begin: int
    end: int

    def overlaps(self, begin: int, end: int) -> bool:
        """Return True if any part of a span is visible."""
        return end >= self.begin and begin <= self.end

    def percent_of(self, moment: int) -> float:
        return 100 * (min(max(moment, self.begin), self.end) - self.begin) / max(self.end - self.begin, 1)

    def extent(self, begin: int, end: int) -> tuple[str, str]:
        """Return left edge and width of a span. A short span is widened, but not beyond the right edge."""
        left, right = self.percent_of(begin), self.percent_of(end)
        width = max(right - left, MIN_WIDTH_PERCENT)
        return f"{min(left, 100 - width):.2f}%", f"{width:.2f}%"

    def ticks(self, origin: int | None = None, most: int = 6) -> list[AxisTick]:
        """Return ticks at round durations since `origin`, by default the start of the scale."""
        since = self.begin if origin is None else origin
        length = self.end - self.begin
        step = next((step for step in STEPS_MS if length / step <= most), max(length, 1))
        first = -(-(self.begin - since) // step) * step
        spans = range(first, self.end - since - round(length * END_MARGIN), step)
        return [
            AxisTick(f"{100 * (since + at - self.begin) / max(length, 1):.2f}%", format_duration(at) if at else "0")
            for at in spans
        ]


def run_span(run: Run, now: int) -> TimeScale:
    """Return the span of a run, up to now if it is open."""
    return TimeScale(run.created_at, max(run.ended_at or now, run.created_at + 1))


def zoom_scale(whole: TimeScale, begin: int | None, end: int | None) -> TimeScale:
    """Return a part of a scale, given in milliseconds since its start, or the whole scale if the part is invalid."""
    if begin is None or end is None or end - begin < 2:
        return whole
    return TimeScale(whole.begin + max(begin, 0), min(whole.begin + end, whole.end + (whole.end - whole.begin)))


def task_rows(
    tasks: Iterable[Task],
    attempts: Iterable[Attempt],
    scale: TimeScale,
    now: int,
    usual: Mapping[str, TypicalDuration] | None = None,
) -> list[TaskRow]:
    """Return a row for each task, in the given order."""
    tries: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        tries.setdefault(attempt.task_id, []).append(attempt)
    return [task_row(task, tries.get(task.pk, []), scale, now, (usual or {}).get(task.ref)) for task in tasks]


def task_row(
    task: Task, attempts: list[Attempt], scale: TimeScale, now: int, usual: TypicalDuration | None = None
) -> TaskRow:
    """Return the row of one task."""
    for attempt in attempts:
        attempt.task = task
    segments = [segment for attempt in attempts for segment in segments_of(attempt, scale, now)]
    gaps = [_retry_gap(one, other, scale) for one, other in pairwise(attempts) if one.ended_at is not None]
    return TaskRow(task, tuple(attempts), (*filter(None, gaps), *segments), _expected_end(attempts, scale, usual))


def _retry_gap(attempt: Attempt, following: Attempt, scale: TimeScale) -> TimelineSegment | None:
    """Return the segment between the end of an attempt and the next one."""
    begin, end = attempt.ended_at or 0, following.scheduled_at
    if end <= begin or not scale.overlaps(begin, end):
        return None
    numbers = {"one": attempt.number + 1, "other": following.number + 1}
    return _build_segment(GAP, following, scale, begin, end, _("between attempts %(one)s and %(other)s") % numbers)


def _expected_end(attempts: list[Attempt], scale: TimeScale, usual: TypicalDuration | None) -> TimelineSegment | None:
    begin = attempts[-1].started_at if attempts else None
    if usual is None or begin is None or not scale.overlaps(begin + usual.p50, begin + usual.p95):
        return None
    if scale.percent_of(begin + usual.p95) - scale.percent_of(begin) < 2 * MIN_WIDTH_PERCENT:
        return None  # too small to distinguish from the bar
    return TimelineSegment("usual", "", *scale.extent(begin + usual.p50, begin + usual.p95), usual.sentence)


def segments_of(attempt: Attempt, scale: TimeScale, now: int) -> Iterator[TimelineSegment]:
    """Yield the visible segments of one attempt."""
    end = now if attempt.ended_at is None else attempt.ended_at
    begin = end if attempt.started_at is None else attempt.started_at
    # Each poll moves `visible_at`. Before the first poll, it is the time at which the attempt was due.
    due_at = attempt.scheduled_at + attempt.delay_ms if attempt.poll_count else attempt.visible_at
    due = min(max(due_at, attempt.scheduled_at), begin)
    facts = {"number": attempt.number + 1, "status": attempt.status.lower()}
    if due > attempt.scheduled_at and scale.overlaps(attempt.scheduled_at, due):
        kind = GAP if attempt.number else DELAY
        yield _build_segment(kind, attempt, scale, attempt.scheduled_at, due, _("attempt %(number)s delayed") % facts)
    if begin > due and scale.overlaps(due, begin):
        yield _build_segment(WAIT, attempt, scale, due, begin, _("attempt %(number)s queued") % facts)
    if attempt.started_at is not None and scale.overlaps(begin, end):
        yield _build_segment(WORK, attempt, scale, begin, end, _("attempt %(number)s %(status)s") % facts)


def _build_segment(kind: str, attempt: Attempt, scale: TimeScale, begin: int, end: int, title: str) -> TimelineSegment:
    return TimelineSegment(kind, attempt.status, *scale.extent(begin, end), f"{title}, {format_duration(end - begin)}")
