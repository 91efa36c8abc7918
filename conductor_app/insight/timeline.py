"""The timeline: one row a task, its attempts as segments whose places are shares of the whole span."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from django.utils.translation import gettext as _

from ..models import Attempt, Run, Task
from .duration_baselines import TypicalDuration
from .durations import format_duration

WAIT, DELAY, GAP, WORK = "wait", "delay", "gap", "work"
MIN_WIDTH_PERCENT = 0.35
"""The smallest share, in percent, that can still be seen and pointed at."""
END_MARGIN = 0.15
"""The share of a scale before its end in which no mark is made: its words would be cut off."""
STEPS = [n * 10**k for k in range(12) for n in (1, 2, 5)]
STEPS_MS = [
    *(s for s in STEPS if s < 60_000),
    *(m * 60_000 for m in (1, 2, 5, 10, 20, 30)),
    *(h * 3_600_000 for h in (1, 2, 4, 6, 12)),
    *(d * 86_400_000 for d in (1, 2, 5, 10, 20, 50, 100)),
]


@dataclass(frozen=True, slots=True)
class TimelineSegment:
    """A stretch of a task: a delay before it is due, the gap to a retry, a wait in the queue, or the work itself."""

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
    """Where it usually ends: from the median to what 95 % stay below."""

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A mark of the axis."""

    left: str
    label: str


@dataclass(frozen=True, slots=True)
class TimeScale:
    """From moments to shares, in percent of the width."""

    begin: int
    end: int

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether any of a stretch can be seen."""
        return end >= self.begin and begin <= self.end

    def percent_of(self, moment: int) -> float:
        return 100 * (min(max(moment, self.begin), self.end) - self.begin) / max(self.end - self.begin, 1)

    def extent(self, begin: int, end: int) -> tuple[str, str]:
        """Left edge and width; a short one is widened, never beyond the right edge."""
        left, right = self.percent_of(begin), self.percent_of(end)
        width = max(right - left, MIN_WIDTH_PERCENT)
        return f"{min(left, 100 - width):.2f}%", f"{width:.2f}%"

    def ticks(self, origin: int | None = None, most: int = 6) -> list[AxisTick]:
        """Marks at round spans since the origin: the run's start, though the scale may begin later."""
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
    """The whole span of the run, up to now while it is open."""
    return TimeScale(run.created_at, max(run.ended_at or now, run.created_at + 1))


def zoom_scale(whole: TimeScale, begin: int | None, end: int | None) -> TimeScale:
    """A part of it; moments are milliseconds since the start. What makes no sense is the whole."""
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
    """A row for each task, in the order given."""
    tries: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        tries.setdefault(attempt.task_id, []).append(attempt)
    return [task_row(task, tries.get(task.pk, []), scale, now, (usual or {}).get(task.ref)) for task in tasks]


def task_row(
    task: Task, attempts: list[Attempt], scale: TimeScale, now: int, usual: TypicalDuration | None = None
) -> TaskRow:
    """One task's row."""
    for attempt in attempts:
        attempt.task = task
    segments = [segment for attempt in attempts for segment in segments_of(attempt, scale, now)]
    gaps = [_retry_gap(one, other, scale) for one, other in pairwise(attempts) if one.ended_at is not None]
    return TaskRow(task, tuple(attempts), (*filter(None, gaps), *segments), _expected_end(attempts, scale, usual))


def _retry_gap(attempt: Attempt, following: Attempt, scale: TimeScale) -> TimelineSegment | None:
    """Between the end of an attempt and the next one."""
    begin, end = attempt.ended_at or 0, following.scheduled_at
    if end <= begin or not scale.overlaps(begin, end):
        return None
    numbers = {"one": attempt.number + 1, "other": following.number + 1}
    return _build_segment(GAP, following, scale, begin, end, _("between attempts %(one)s and %(other)s") % numbers)


def _expected_end(attempts: list[Attempt], scale: TimeScale, usual: TypicalDuration | None) -> TimelineSegment | None:
    begun = attempts[-1].started_at if attempts else None
    if usual is None or begun is None or not scale.overlaps(begun + usual.p50, begun + usual.p95):
        return None
    if scale.percent_of(begun + usual.p95) - scale.percent_of(begun) < 2 * MIN_WIDTH_PERCENT:
        return None  # too small to be told from the bar
    return TimelineSegment("usual", "", *scale.extent(begun + usual.p50, begun + usual.p95), usual.sentence)


def segments_of(attempt: Attempt, scale: TimeScale, now: int) -> Iterator[TimelineSegment]:
    """The stretches of one attempt that can be seen."""
    end = now if attempt.ended_at is None else attempt.ended_at
    begun = end if attempt.started_at is None else attempt.started_at
    # Each look of a worker moves `visible_at`; until the first one it says when the attempt was due.
    wished = attempt.scheduled_at + attempt.delay_ms if attempt.poll_count else attempt.visible_at
    due = min(max(wished, attempt.scheduled_at), begun)
    said = {"number": attempt.number + 1, "status": attempt.status.lower()}
    if due > attempt.scheduled_at and scale.overlaps(attempt.scheduled_at, due):
        kind = GAP if attempt.number else DELAY
        yield _build_segment(kind, attempt, scale, attempt.scheduled_at, due, _("attempt %(number)s delayed") % said)
    if begun > due and scale.overlaps(due, begun):
        yield _build_segment(WAIT, attempt, scale, due, begun, _("attempt %(number)s in the queue") % said)
    if attempt.started_at is not None and scale.overlaps(begun, end):
        yield _build_segment(WORK, attempt, scale, begun, end, _("attempt %(number)s %(status)s") % said)


def _build_segment(kind: str, attempt: Attempt, scale: TimeScale, begin: int, end: int, title: str) -> TimelineSegment:
    return TimelineSegment(kind, attempt.status, *scale.extent(begin, end), f"{title}, {format_duration(end - begin)}")
