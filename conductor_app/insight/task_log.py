"""What workers logged for an attempt, a window at a time: however long it is, a page reads a few hundred lines."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from ..models import TaskLog

WINDOW_LINES = 200
"""How many lines one window shows."""
LINES_AROUND = WINDOW_LINES // 2
MAX_SEARCHED_LINES = 20_000
"""Lines that one search looks through, the newest first; from there on it can be asked to go on."""
CHUNK = 2_000


SECONDS_BELOW = 100_000_000_000
"""What stamps below it count: Conductor's Python SDK stamps its lines in seconds, where others do in milliseconds."""


def logged_at(line_at: int) -> int:
    """When a line was logged, by its stamp."""
    return line_at * 1000 if line_at < SECONDS_BELOW else line_at


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Where a line stands among those of its attempt; lines of one moment stand in the order in which they came."""

    at: int
    id: int

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"

    @classmethod
    def parse(cls, text: str) -> "LogPosition | None":
        """The place that an address names, if it names one."""
        at, _, id = text.partition(".")
        if not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in (at, id)):
            return None
        return cls(int(at), int(id))

    # The moment is compared by itself first: that is a range of the index, which an OR is not.
    def before(self, *, inclusive: bool = False) -> Q:
        """The lines before this place; `inclusive`: and its own."""
        return Q(at__lte=self.at) & (Q(at__lt=self.at) | Q(**{"id__lte" if inclusive else "id__lt": self.id}))

    def after(self, *, inclusive: bool = False) -> Q:
        """The lines after this place; `inclusive`: and its own."""
        return Q(at__gte=self.at) & (Q(at__gt=self.at) | Q(**{"id__gte" if inclusive else "id__gt": self.id}))


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which lines the reader wants: the newest, those before or after a place, those around one, those with a word."""

    before: LogPosition | None = None
    after: LogPosition | None = None
    line: LogPosition | None = None
    find: str = ""

    @property
    def is_tail(self) -> bool:
        return not (self.before or self.after or self.line or self.find)


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Some lines, oldest first. `earlier`, `later`: where the windows beside it begin, if there are any."""

    lines: list[TaskLog]
    criteria: LogRequest
    earlier: LogPosition | None = None
    later: LogPosition | None = None


def log_window(attempt_id: str, criteria: LogRequest) -> LogWindow:
    """The lines that are wanted, in three statements at most."""
    rows = TaskLog.objects.filter(attempt_id=attempt_id)
    if criteria.find:
        return _matching_lines(rows, criteria)
    if criteria.line:
        return _lines_around(rows, criteria, criteria.line)
    if criteria.after:
        return _lines_after(rows, criteria, criteria.after)
    lines = _newest_lines(rows.filter(criteria.before.before()) if criteria.before else rows, WINDOW_LINES + 1)
    shown = lines[-WINDOW_LINES:]
    return LogWindow(
        shown,
        criteria,
        _first_position(shown) if len(lines) > WINDOW_LINES else None,
        _last_position(shown) if criteria.before else None,
    )


def _lines_after(rows: QuerySet[TaskLog], criteria: LogRequest, place: LogPosition) -> LogWindow:
    lines = list(rows.filter(place.after()).order_by("at", "id")[: WINDOW_LINES + 1])
    shown = lines[:WINDOW_LINES]
    return LogWindow(
        shown, criteria, _first_position(shown) or place, _last_position(shown) if len(lines) > WINDOW_LINES else None
    )


def _lines_around(rows: QuerySet[TaskLog], criteria: LogRequest, place: LogPosition) -> LogWindow:
    """The line itself stands among those before it."""
    before = _newest_lines(rows.filter(place.before(inclusive=True)), LINES_AROUND + 1)
    after = list(rows.filter(place.after()).order_by("at", "id")[: LINES_AROUND + 1])
    shown = [*before[-LINES_AROUND:], *after[:LINES_AROUND]]
    earlier = _first_position(shown) if len(before) > LINES_AROUND else None
    return LogWindow(shown, criteria, earlier, _last_position(shown) if len(after) > LINES_AROUND else None)


def _matching_lines(rows: QuerySet[TaskLog], criteria: LogRequest) -> LogWindow:
    if criteria.before:
        rows = rows.filter(criteria.before.before())
    last = rows.order_by("-at", "-id").values_list("at", "id")[MAX_SEARCHED_LINES - 1 : MAX_SEARCHED_LINES].first()
    bound = LogPosition(*last) if last else None
    looked_at = rows.filter(bound.after(inclusive=True)) if bound else rows
    hits = _newest_lines(looked_at.filter(line__icontains=criteria.find), WINDOW_LINES + 1)
    shown = hits[-WINDOW_LINES:]
    return LogWindow(shown, criteria, _first_position(shown) if len(hits) > WINDOW_LINES else bound)


def _newest_lines(rows: QuerySet[TaskLog], count: int) -> list[TaskLog]:
    return list(rows.order_by("-at", "-id")[:count])[::-1]


def _first_position(lines: list[TaskLog]) -> LogPosition | None:
    return position_of(lines[0]) if lines else None


def _last_position(lines: list[TaskLog]) -> LogPosition | None:
    return position_of(lines[-1]) if lines else None


def position_of(line: TaskLog) -> LogPosition:
    """Where a line stands."""
    return LogPosition(line.at, line.pk)


def iterate_chunks(attempt_id: str) -> Iterator[list[TaskLog]]:
    """All lines, oldest first, a chunk a statement."""
    rows, place = TaskLog.objects.filter(attempt_id=attempt_id).order_by("at", "id"), LogPosition(-1, 0)
    while chunk := list(rows.filter(place.after())[:CHUNK]):
        yield chunk
        place = position_of(chunk[-1])
