"""A run's tasks as a page reads them: counted by status, those alike as one group, a window of them with attempts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Max, Min, Q, QuerySet

from ..core.states import TASK
from ..models import Attempt, Run, Task

WINDOW = 300
"""How many tasks one page shows."""
MOST_ATTEMPTS = 1500
"""How many attempts are read for one window."""
FEW = 60
"""A run of no more tasks is shown one by one."""
ALIKE = 12
"""In larger runs, more tasks of one name than this become a group."""


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """What the reader wants to see: tasks in one status, or of one name; which window of them."""

    status: str = ""
    only: str = ""
    page: int = 1


@dataclass(frozen=True, slots=True)
class StepTasks:
    """Tasks of one name: turns of a loop, branches of a fork."""

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
    """Some of a run's tasks, in the order in which they came into being, and the groups that stand for others."""

    tasks: list[Task]
    attempts: list[Attempt]
    groups: list[StepTasks]
    counts: dict[str, int]
    wanted: TaskRequest
    total: int

    @property
    def pages(self) -> int:
        return max(-(-self.total // WINDOW), 1)

    @property
    def page(self) -> int:
        return self.wanted.page

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


def task_window(run: Run, wanted: TaskRequest) -> TaskWindow:
    """What the reader wants to see. Few tasks are read at once; of many, those alike are counted and not read."""
    tasks = list(_tasks_of(run)[: FEW + 1])
    if len(tasks) <= FEW:
        counts = Counter(task.status for task in tasks)
        shown = [task for task in tasks if _matches(task, wanted)]
        return TaskWindow(shown, attempts_of(shown), [], dict(counts), wanted, len(shown))
    groups = groups_of(run)
    counts = sum((Counter(group.counts) for group in groups), Counter())
    alike = [] if wanted.only else [group for group in groups if group.total > ALIKE]
    rest = _matching(run, wanted).exclude(name__in=[group.name for group in alike])
    shown = list(rest[(wanted.page - 1) * WINDOW : wanted.page * WINDOW])
    total = _total(groups, alike, wanted)
    seen = [group for group in alike if not wanted.status or wanted.status in group.counts]
    return TaskWindow(shown, attempts_of(shown), seen if wanted.page == 1 else [], dict(counts), wanted, total)


def groups_of(run: Run) -> list[StepTasks]:
    """All tasks of the run by their names, in the order in which the first of each came."""
    alike = Task.objects.filter(run_id=run.pk).order_by().values_list("name", "type", "status")
    rows = alike.annotate(Count("pk", distinct=True), Min("seq"), Min("created_at"), Max("attempts__ended_at"))
    found: dict[tuple[str, str], list] = {}
    for name, type, *facts in rows:
        found.setdefault((name, type), []).append(facts)
    groups = [_group(name, type, each) for (name, type), each in found.items()]
    return sorted(groups, key=lambda group: group.first_seq)


def _group(name: str, type: str, rows: list) -> StepTasks:
    return StepTasks(
        name,
        type,
        {status: count for status, count, *_ in rows},
        min(row[2] for row in rows),
        min(row[3] for row in rows),
        max(row[4] or row[3] for row in rows),
    )


def page_of(run: Run, name: str) -> int:
    """In which window of all tasks of its name the task is."""
    task = find_task(run, name)
    if task is None:
        return 1
    return _tasks_of(run).filter(name=task.name, seq__lt=task.seq).count() // WINDOW + 1


def find_task(run: Run, name: str) -> Task | None:
    """The task called so. A reference may hold two underscores of its own, so every reading is tried."""
    parts = name.split("__")
    refs = ["__".join(parts[:count]) for count in range(1, len(parts) + 1)]
    iterations = {ref: ".".join(parts[count:]) for count, ref in enumerate(refs, 1)}
    ways = Q()
    for ref in refs[-6:]:
        ways |= Q(ref=ref, iteration_path=iterations[ref])
    return _tasks_of(run).filter(ways).first() if name else None


def attempts_of(tasks: Iterable[Task]) -> list[Attempt]:
    """The attempts of these tasks, without their payloads."""
    ids = [task.pk for task in tasks]
    if not ids:
        return []
    found = Attempt.objects.defer_payloads().filter(task_id__in=ids)
    return list(found.order_by("task_id", "number")[:MOST_ATTEMPTS])


def _tasks_of(run: Run) -> QuerySet[Task]:
    return Task.objects.filter(run_id=run.pk).order_by("seq").defer("step_state")


def _matching(run: Run, wanted: TaskRequest) -> QuerySet[Task]:
    tasks = _tasks_of(run)
    if wanted.status:
        tasks = tasks.filter(status=wanted.status)
    return tasks.filter(name=wanted.only) if wanted.only else tasks


def _matches(task: Task, wanted: TaskRequest) -> bool:
    return (not wanted.status or task.status == wanted.status) and (not wanted.only or task.name == wanted.only)


def _total(groups: list[StepTasks], alike: list[StepTasks], wanted: TaskRequest) -> int:
    """How many tasks the windows hold: of the groups that are not closed."""
    opened = [group for group in groups if group not in alike and (not wanted.only or group.name == wanted.only)]
    return sum(group.counts.get(wanted.status, 0) if wanted.status else group.total for group in opened)
