"""Tasks of a run for its page: counts by status, the tasks with their attempts, and logs.

A log is read in windows of a few hundred lines, so that pages stay fast for any length.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from ...core.definition import possible_keys
from ...runs.models import Attempt, Run, Task, TaskLog

WINDOW_LINES = 200
LINES_AROUND = WINDOW_LINES // 2
MAX_SEARCHED_LINES = 20_000
"""Lines that one search scans, newest first. The next search continues there."""
CHUNK = 2_000
SECONDS_BELOW = 100_000_000_000
"""Timestamps below this are in seconds, as those of Conductor's Python SDK; others are in milliseconds."""


def logged_at(line_at: int) -> int:
    """Return the time of a log line in milliseconds."""
    return line_at * 1000 if line_at < SECONDS_BELOW else line_at


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Position of a log line. Lines with equal times are in the order of their arrival."""

    at: int
    id: int

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"

    @classmethod
    def parse(cls, text: str) -> "LogPosition | None":
        """Parse a position from an address, or return None if it is malformed."""
        at, _, id = text.partition(".")
        if not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in (at, id)):
            return None
        return cls(int(at), int(id))

    # The time is also compared on its own: that is a range of the index, unlike the OR.
    def before(self, *, inclusive: bool = False) -> Q:
        """Return the condition for lines before this position. `inclusive`: include the line itself."""
        return Q(at__lte=self.at) & (Q(at__lt=self.at) | Q(**{"id__lte" if inclusive else "id__lt": self.id}))

    def after(self, *, inclusive: bool = False) -> Q:
        """Return the condition for lines after this position. `inclusive`: include the line itself."""
        return Q(at__gte=self.at) & (Q(at__gt=self.at) | Q(**{"id__gte" if inclusive else "id__gt": self.id}))


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Requested lines: the newest, before or after a position, around a line, or those that contain a text."""

    before: LogPosition | None = None
    after: LogPosition | None = None
    line: LogPosition | None = None
    find: str = ""

    @property
    def is_tail(self) -> bool:
        return not (self.before or self.after or self.line or self.find)


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Some lines, oldest first. `earlier`, `later`: positions of the adjacent windows, if there are any."""

    lines: list[TaskLog]
    criteria: LogRequest
    earlier: LogPosition | None = None
    later: LogPosition | None = None


def log_window(attempt_id: str, criteria: LogRequest) -> LogWindow:
    """Return the requested lines. Runs at most three statements."""
    rows = TaskLog.objects.filter(attempt_id=attempt_id)
    if criteria.find:
        return _matching_lines(rows, criteria)
    if criteria.line:
        return _lines_around(rows, criteria, criteria.line)
    if criteria.after:
        lines = list(rows.filter(criteria.after.after()).order_by("at", "id")[: WINDOW_LINES + 1])
        visible = lines[:WINDOW_LINES]
        return LogWindow(
            visible,
            criteria,
            _first_position(visible) or criteria.after,
            _last_position(visible) if len(lines) > WINDOW_LINES else None,
        )
    lines = _newest_lines(rows.filter(criteria.before.before()) if criteria.before else rows, WINDOW_LINES + 1)
    visible = lines[-WINDOW_LINES:]
    return LogWindow(
        visible,
        criteria,
        _first_position(visible) if len(lines) > WINDOW_LINES else None,
        _last_position(visible) if criteria.before else None,
    )


def _lines_around(rows: QuerySet[TaskLog], criteria: LogRequest, place: LogPosition) -> LogWindow:
    """Return the window around a line. The line itself belongs to the first half."""
    before = _newest_lines(rows.filter(place.before(inclusive=True)), LINES_AROUND + 1)
    after = list(rows.filter(place.after()).order_by("at", "id")[: LINES_AROUND + 1])
    visible = [*before[-LINES_AROUND:], *after[:LINES_AROUND]]
    earlier = _first_position(visible) if len(before) > LINES_AROUND else None
    return LogWindow(visible, criteria, earlier, _last_position(visible) if len(after) > LINES_AROUND else None)


def _matching_lines(rows: QuerySet[TaskLog], criteria: LogRequest) -> LogWindow:
    if criteria.before:
        rows = rows.filter(criteria.before.before())
    last = rows.order_by("-at", "-id").values_list("at", "id")[MAX_SEARCHED_LINES - 1 : MAX_SEARCHED_LINES].first()
    bound = LogPosition(*last) if last else None
    scanned = rows.filter(bound.after(inclusive=True)) if bound else rows
    hits = _newest_lines(scanned.filter(line__icontains=criteria.find), WINDOW_LINES + 1)
    visible = hits[-WINDOW_LINES:]
    return LogWindow(visible, criteria, _first_position(visible) if len(hits) > WINDOW_LINES else bound)


def _newest_lines(rows: QuerySet[TaskLog], count: int) -> list[TaskLog]:
    return list(rows.order_by("-at", "-id")[:count])[::-1]


def _first_position(lines: list[TaskLog]) -> LogPosition | None:
    return position_of(lines[0]) if lines else None


def _last_position(lines: list[TaskLog]) -> LogPosition | None:
    return position_of(lines[-1]) if lines else None


def position_of(line: TaskLog) -> LogPosition:
    return LogPosition(line.at, line.pk)


def iterate_chunks(attempt_id: str) -> Iterator[list[TaskLog]]:
    """Yield all lines in chunks, oldest first. Runs one statement per chunk."""
    rows, place = TaskLog.objects.filter(attempt_id=attempt_id).order_by("at", "id"), LogPosition(-1, 0)
    while chunk := list(rows.filter(place.after())[:CHUNK]):
        yield chunk
        place = position_of(chunk[-1])


MAX_ATTEMPTS = 1500


def count_tasks(run: Run) -> dict[str, int]:
    statuses = Task.objects.filter(run_id=run.pk).order_by().values_list("status")
    return dict(statuses.annotate(Count("pk")))


def find_task(run: Run, name: str) -> Task | None:
    """Return a task by its display name, or the newest task of a step by its reference.

    A reference may contain `__` itself, so every split of the name is tried.
    """
    if not name:
        return None
    ways = Q()
    for key in possible_keys(name):
        ways |= Q(ref=key.ref, iteration_path=".".join(map(str, key.iteration_path)))
    return tasks_of(run).filter(ways).first() or tasks_of(run).filter(ref=name).order_by("-seq").first()


def attempts_of(tasks: Iterable[Task]) -> list[Attempt]:
    """Return the attempts of these tasks, without their payloads."""
    ids = [task.pk for task in tasks]
    if not ids:
        return []
    found = Attempt.objects.defer_payloads().filter(task_id__in=ids)
    return list(found.order_by("task_id", "number")[:MAX_ATTEMPTS])


def attempts_of_tasks(ids: Iterable[str]) -> list[Attempt]:
    """Return the attempts of tasks by their ids, together with the tasks, without payloads."""
    found = Attempt.objects.defer_payloads().defer("input", "output", "task__step_state").select_related("task")
    return list(found.filter(task_id__in=list(ids)).order_by("task_id", "number")[:MAX_ATTEMPTS])


def tasks_of(run: Run) -> QuerySet[Task]:
    """Return the tasks of a run in the order of their creation."""
    return Task.objects.filter(run_id=run.pk).order_by("seq").defer("step_state")
