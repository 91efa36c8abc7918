"""A run's tasks as a page reads them: counted by status, and a window of them with their attempts."""

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from ..models import Attempt, Run, Task

WINDOW = 300
"""How many tasks one page shows."""
MOST_ATTEMPTS = 1500
"""How many attempts are read for one window."""


@dataclass(frozen=True, slots=True)
class TaskWindow:
    """Some of a run's tasks, in the order in which they came into being."""

    tasks: list[Task]
    attempts: list[Attempt]
    counts: dict[str, int]
    status: str
    page: int

    @property
    def total(self) -> int:
        """How many tasks match the chosen status."""
        return self.counts.get(self.status, 0) if self.status else sum(self.counts.values())

    @property
    def pages(self) -> int:
        return max(-(-self.total // WINDOW), 1)

    @property
    def first(self) -> int:
        return (self.page - 1) * WINDOW + 1

    @property
    def previous(self) -> int | None:
        """The number of the window before, if there is one."""
        return self.page - 1 if self.page > 1 else None

    @property
    def next(self) -> int | None:
        """The number of the window after, if there is one."""
        return self.page + 1 if self.page < self.pages else None

    @property
    def last(self) -> int:
        return self.first + len(self.tasks) - 1


def task_window(run: Run, status: str = "", page: int = 1) -> TaskWindow:
    """The window with this number, of all tasks or of those in one status."""
    tasks = list(_matching(run, status)[(page - 1) * WINDOW : page * WINDOW])
    is_all = page == 1 and not status and len(tasks) < WINDOW
    counts = Counter(task.status for task in tasks) if is_all else _counted(run)
    return TaskWindow(tasks, _attempts_of(tasks), dict(counts), status, page)


def window_of(run: Run, name: str, status: str = "") -> TaskWindow:
    """The window that holds the task of this name; the first one, if none does."""
    first = task_window(run, status)
    if first.pages == 1 or any(str(task) == name for task in first.tasks):
        return first
    return task_window(run, status, _matching(run, status).filter(seq__lt=_seq(run, name)).count() // WINDOW + 1)


def _matching(run: Run, status: str) -> QuerySet[Task]:
    tasks = Task.objects.filter(run_id=run.pk).order_by("seq").defer("memo")
    return tasks.filter(status=status) if status else tasks


def _counted(run: Run) -> dict[str, int]:
    return dict(Task.objects.filter(run_id=run.pk).order_by().values_list("status").annotate(Count("pk")))


def _seq(run: Run, name: str) -> int:
    """The place of the task. A reference may hold two underscores of its own, so every reading is tried."""
    parts = name.split("__")
    refs = ["__".join(parts[:count]) for count in range(1, len(parts) + 1)]
    tasks = Task.objects.filter(run_id=run.pk, ref__in=refs[-6:]).only("ref", "turn", "seq")
    return next((task.seq for task in tasks if str(task) == name), 0)


def _attempts_of(tasks: list[Task]) -> list[Attempt]:
    found = Attempt.objects.light().filter(task_id__in=[task.pk for task in tasks])
    return list(found.order_by("task_id", "number")[:MOST_ATTEMPTS])
