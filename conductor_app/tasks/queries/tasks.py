"""Tasks of a run for its page: counts by status, groups of tasks with one name, and a window with attempts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Max, Min, Q, QuerySet

from ...core.definition import possible_keys
from ...core.states import TASK
from ...runs.models import Attempt, Run, Task

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
