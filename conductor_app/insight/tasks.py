"""A run's tasks as a page reads them: counted by status, and a window of them with their attempts."""

from dataclasses import dataclass

from django.db.models import Count

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


def task_window(run: Run, status: str = "", page: int = 1, around: int | None = None) -> TaskWindow:
    """The window with this number, or the one around the task with this seq; of all tasks or of those in one status."""
    counts = dict(Task.objects.filter(run_id=run.pk).order_by().values_list("status").annotate(Count("pk")))
    matching = Task.objects.filter(run_id=run.pk, **({"status": status} if status else {}))
    if around is not None and sum(counts.values()) > WINDOW:
        page = matching.filter(seq__lt=around).count() // WINDOW + 1
    page = max(page, 1)
    tasks = list(matching.order_by("seq").defer("memo")[(page - 1) * WINDOW : page * WINDOW])
    return TaskWindow(tasks, _attempts_of(tasks), counts, status, page)


def _attempts_of(tasks: list[Task]) -> list[Attempt]:
    found = Attempt.objects.light().filter(task_id__in=[task.pk for task in tasks])
    return list(found.order_by("task_id", "number")[:MOST_ATTEMPTS])
