"""The timeline: one row a task, its attempts as segments whose places are shares of the whole span."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..models import Attempt, Run, Task
from .spans import span

WAIT, DELAY, WORK = "wait", "delay", "work"
LEAST = 0.35
"""The smallest share, in percent, that can still be seen and pointed at."""
STEPS = [n * 10**k for k in range(12) for n in (1, 2, 5)]
STEPS_MS = [
    *(s for s in STEPS if s < 60_000),
    *(m * 60_000 for m in (1, 2, 5, 10, 20, 30)),
    *(h * 3_600_000 for h in (1, 2, 4, 6, 12)),
    *(d * 86_400_000 for d in (1, 2, 5, 10, 20, 50, 100)),
]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of an attempt: a delay before it is due, its wait in the queue, or the work itself."""

    kind: str
    status: str
    left: str
    width: str
    title: str


@dataclass(frozen=True, slots=True)
class Row:
    """One task with its attempts, oldest first."""

    task: Task
    attempts: tuple[Attempt, ...]
    segments: tuple[Segment, ...]

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of the axis."""

    left: str
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """From moments to shares, in percent of the width."""

    begin: int
    end: int

    def share(self, moment: int) -> float:
        return 100 * (min(max(moment, self.begin), self.end) - self.begin) / max(self.end - self.begin, 1)

    def stretch(self, begin: int, end: int) -> tuple[str, str]:
        """Left edge and width; a short one is widened, never beyond the right edge."""
        left, right = self.share(begin), self.share(end)
        width = max(right - left, LEAST)
        return f"{min(left, 100 - width):.2f}%", f"{width:.2f}%"

    def ticks(self, most: int = 6) -> list[Tick]:
        """Marks at round spans since the start."""
        length = self.end - self.begin
        step = next((step for step in STEPS_MS if length / step <= most), length)
        return [
            Tick(f"{100 * at / max(length, 1):.2f}%", span(at) if at else "0") for at in range(0, length, max(step, 1))
        ]


def scale_of(run: Run, now: int) -> Scale:
    """The whole span of the run, up to now while it is open."""
    return Scale(run.created_at, max(run.ended_at or now, run.created_at + 1))


def rows(tasks: Iterable[Task], attempts: Iterable[Attempt], scale: Scale, now: int) -> list[Row]:
    """A row for each task, in the order given."""
    tries: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        tries.setdefault(attempt.task_id, []).append(attempt)
    return [row(task, tries.get(task.pk, []), scale, now) for task in tasks]


def row(task: Task, attempts: list[Attempt], scale: Scale, now: int) -> Row:
    """One task's row."""
    for attempt in attempts:
        attempt.task = task
    segments = tuple(segment for attempt in attempts for segment in segments_of(attempt, scale, now))
    return Row(task, tuple(attempts), segments)


def segments_of(attempt: Attempt, scale: Scale, now: int) -> Iterator[Segment]:
    """The stretches of one attempt."""
    end = now if attempt.ended_at is None else attempt.ended_at
    begun = end if attempt.started_at is None else attempt.started_at
    due = min(max(attempt.visible_at if attempt.poll_count == 0 else attempt.scheduled_at, attempt.scheduled_at), begun)
    number = attempt.number + 1
    if due > attempt.scheduled_at:
        yield _segment(DELAY, attempt, scale, attempt.scheduled_at, due, f"attempt {number} delayed")
    if begun > due:
        yield _segment(WAIT, attempt, scale, due, begun, f"attempt {number} in the queue")
    if attempt.started_at is not None:
        yield _segment(WORK, attempt, scale, begun, end, f"attempt {number} {attempt.status.lower()}")


def _segment(kind: str, attempt: Attempt, scale: Scale, begin: int, end: int, title: str) -> Segment:
    return Segment(kind, attempt.status, *scale.stretch(begin, end), f"{title}, {span(end - begin)}")
