"""Tasks of a run for its page: counts by status, groups of tasks with one name, a window with attempts, and logs.

A log is read in windows of a few hundred lines, so that pages stay fast for any length.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Count, Max, Min, Q, QuerySet

from ...core.definition import possible_keys
from ...core.states import TASK
from ...runs.models import Attempt, Run, Task, TaskLog

WINDOW_LINES = 200
"""Lines of one window."""
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
        return _lines_after(rows, criteria, criteria.after)
    lines = _newest_lines(rows.filter(criteria.before.before()) if criteria.before else rows, WINDOW_LINES + 1)
    visible = lines[-WINDOW_LINES:]
    return LogWindow(
        visible,
        criteria,
        _first_position(visible) if len(lines) > WINDOW_LINES else None,
        _last_position(visible) if criteria.before else None,
    )


def _lines_after(rows: QuerySet[TaskLog], criteria: LogRequest, place: LogPosition) -> LogWindow:
    lines = list(rows.filter(place.after()).order_by("at", "id")[: WINDOW_LINES + 1])
    visible = lines[:WINDOW_LINES]
    return LogWindow(
        visible,
        criteria,
        _first_position(visible) or place,
        _last_position(visible) if len(lines) > WINDOW_LINES else None,
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
    """Return the position of a line."""
    return LogPosition(line.at, line.pk)


def iterate_chunks(attempt_id: str) -> Iterator[list[TaskLog]]:
    """Yield all lines in chunks, oldest first. Runs one statement per chunk."""
    rows, place = TaskLog.objects.filter(attempt_id=attempt_id).order_by("at", "id"), LogPosition(-1, 0)
    while chunk := list(rows.filter(place.after())[:CHUNK]):
        yield chunk
        place = position_of(chunk[-1])


WINDOW_TASKS = 300
"""Tasks on one page."""
MAX_ATTEMPTS = 1500
"""Attempts that are read for one page."""
FEW = 60
"""Runs with at most this many tasks are visible without grouping."""
ALIKE = 12
"""In larger runs, more tasks of one name than this are grouped."""


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """Filter of the task list: tasks in one status or of one name (`only`), and the page number."""

    status: str = ""
    only: str = ""
    page: int = 1


@dataclass(frozen=True, slots=True)
class StepTasks:
    """Tasks of one name, such as the iterations of a loop or the branches of a fork."""

    name: str
    type: str
    counts: dict[str, int]
    first_seq: int
    begin: int
    end: int

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def is_open(self) -> bool:
        return any(status in TASK.open for status in self.counts)


@dataclass(frozen=True, slots=True)
class TaskWindow:
    """One page of a run's tasks in the order of their creation, and the groups that stand for other tasks."""

    tasks: list[Task]
    attempts: list[Attempt]
    groups: list[StepTasks]
    counts: dict[str, int]
    criteria: TaskRequest
    total: int

    @property
    def pages(self) -> int:
        return max(-(-self.total // WINDOW_TASKS), 1)

    @property
    def page(self) -> int:
        return self.criteria.page

    @property
    def first(self) -> int:
        return (self.page - 1) * WINDOW_TASKS + 1

    @property
    def previous(self) -> int | None:
        """Return the number of the previous page, if there is one."""
        return self.page - 1 if self.page > 1 else None

    @property
    def next(self) -> int | None:
        """Return the number of the next page, if there is one."""
        return self.page + 1 if self.page < self.pages else None

    @property
    def last(self) -> int:
        return self.first + len(self.tasks) - 1


def task_window(run: Run, criteria: TaskRequest) -> TaskWindow:
    """Return the requested tasks. In a large run, tasks of one name are counted instead of read."""
    tasks = list(_tasks_of(run)[: FEW + 1])
    if len(tasks) <= FEW:
        counts = Counter(task.status for task in tasks)
        visible = [task for task in tasks if _matches(task, criteria)]
        return TaskWindow(visible, attempts_of(visible), [], dict(counts), criteria, len(visible))
    groups = groups_of(run)
    counts = sum((Counter(group.counts) for group in groups), Counter())
    alike = [] if criteria.only else [group for group in groups if group.total > ALIKE]
    rest = _filter_tasks(run, criteria).exclude(name__in=[group.name for group in alike])
    visible = list(rest[(criteria.page - 1) * WINDOW_TASKS : criteria.page * WINDOW_TASKS])
    total = _count_visible(groups, alike, criteria)
    seen = [group for group in alike if not criteria.status or criteria.status in group.counts]
    return TaskWindow(visible, attempts_of(visible), seen if criteria.page == 1 else [], dict(counts), criteria, total)


def groups_of(run: Run) -> list[StepTasks]:
    """Return all tasks of a run grouped by name, in the order of their first task."""
    alike = Task.objects.filter(run_id=run.pk).order_by().values_list("name", "type", "status")
    rows = alike.annotate(Count("pk", distinct=True), Min("seq"), Min("created_at"), Max("attempts__ended_at"))
    found: dict[tuple[str, str], list] = {}
    for name, type, *facts in rows:
        found.setdefault((name, type), []).append(facts)
    groups = [_build_step_tasks(name, type, each) for (name, type), each in found.items()]
    return sorted(groups, key=lambda group: group.first_seq)


def _build_step_tasks(name: str, type: str, rows: list) -> StepTasks:
    return StepTasks(
        name,
        type,
        {status: count for status, count, *_ in rows},
        min(row[2] for row in rows),
        min(row[3] for row in rows),
        max(row[4] or row[3] for row in rows),
    )


def page_of(run: Run, name: str) -> int:
    """Return the page on which a task is, among all tasks with its name."""
    task = find_task(run, name)
    if task is None:
        return 1
    return _tasks_of(run).filter(name=task.name, seq__lt=task.seq).count() // WINDOW_TASKS + 1


def find_task(run: Run, name: str) -> Task | None:
    """Return a task by its display name, or the newest task of a step by its reference.

    A reference may contain `__` itself, so every split of the name is tried.
    """
    if not name:
        return None
    ways = Q()
    for key in possible_keys(name):
        ways |= Q(ref=key.ref, iteration_path=".".join(map(str, key.iteration_path)))
    return _tasks_of(run).filter(ways).first() or _tasks_of(run).filter(ref=name).order_by("-seq").first()


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


def _tasks_of(run: Run) -> QuerySet[Task]:
    return Task.objects.filter(run_id=run.pk).order_by("seq").defer("step_state")


def _filter_tasks(run: Run, criteria: TaskRequest) -> QuerySet[Task]:
    tasks = _tasks_of(run)
    if criteria.status:
        tasks = tasks.filter(status=criteria.status)
    return tasks.filter(name=criteria.only) if criteria.only else tasks


def _matches(task: Task, criteria: TaskRequest) -> bool:
    return (not criteria.status or task.status == criteria.status) and (not criteria.only or task.name == criteria.only)


def _count_visible(groups: list[StepTasks], alike: list[StepTasks], criteria: TaskRequest) -> int:
    """Return the number of tasks that are not folded into groups."""
    opened = [group for group in groups if group not in alike and (not criteria.only or group.name == criteria.only)]
    return sum(group.counts.get(criteria.status, 0) if criteria.status else group.total for group in opened)
