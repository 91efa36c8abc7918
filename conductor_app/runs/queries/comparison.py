"""Comparison of two runs: their tasks by reference and iteration, and the differences of their payloads."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from ...access.visibility import visible
from ...core.failure_grouping import build_of
from ...db.fields import LAST_ID_PART
from ...utils.differences import Difference, find_differences
from ..models import Attempt, Run, Task

MAX_TASKS = 2_000
MAX_ROWS = 500
LARGE_DOCUMENT_BYTES = 64_000
DOCUMENTS = ("input", "output", "variables")
SUCCESS_STATUSES, FAILURE_STATUSES = ("COMPLETED",), ("FAILED", "TIMED_OUT", "TERMINATED")


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """One task of one run: its time in the queue, its duration, its number of attempts and its last worker."""

    status: str
    waited_ms: int | None
    ran_ms: int | None
    attempts: int
    worker: str
    attempt_id: str

    @property
    def build(self) -> str:
        return build_of(self.worker)


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One task that at least one of the two runs has."""

    key: str
    one: ComparedTask | None
    other: ComparedTask | None

    @property
    def delta_ms(self) -> int | None:
        """Return how much longer the second run's task took, in milliseconds."""
        if self.one is None or self.other is None or self.one.ran_ms is None or self.other.ran_ms is None:
            return None
        return self.other.ran_ms - self.one.ran_ms

    @property
    def differs(self) -> bool:
        if self.one is None or self.other is None:
            return True
        return (self.one.status, self.one.attempts, self.one.build) != (
            self.other.status,
            self.other.attempts,
            self.other.build,
        )


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Result of a comparison. `documents`: differences by payload name; None if a payload is too large to compare."""

    one: Run
    other: Run
    rows: list[ComparedRow]
    documents: dict[str, list[Difference] | None] = field(default_factory=dict)
    is_cut: bool = False

    @property
    def have_same_definition(self) -> bool:
        return self.one.name == self.other.name

    @property
    def have_same_version(self) -> bool:
        return self.one.resolved_definition_id == self.other.resolved_definition_id

    @property
    def are_identical(self) -> bool:
        """True if the runs differ only in their times."""
        return not any(row.differs for row in self.rows) and not any(self.documents.values())


def compare_runs(one: Run, other: Run) -> RunComparison:
    """Compare two runs that were loaded with the sizes of their payloads."""
    first, second = _load_tasks(one), _load_tasks(other)
    rows = (ComparedRow(key, first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second]))
    found = list(islice(rows, MAX_ROWS))
    documents = {name: _document_differences(one, other, name) for name in DOCUMENTS}
    return RunComparison(one, other, found, documents, len(first | second) > MAX_ROWS)


def _load_tasks(run: Run) -> dict[str, ComparedTask]:
    tasks = list(Task.objects.filter(run_id=run.pk).order_by("seq").defer("step_state")[:MAX_TASKS])
    attempts = Attempt.objects.defer_payloads().filter(run_id=run.pk).order_by("seq")[: 2 * MAX_TASKS]
    by_task: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        by_task.setdefault(attempt.task_id, []).append(attempt)
    return {str(task): _compared_task(task, by_task.get(task.pk, [])) for task in tasks}


def _compared_task(task: Task, attempts: Iterable[Attempt]) -> ComparedTask:
    tries = list(attempts)
    last = next((attempt for attempt in tries if attempt.pk == task.attempt_id), tries[-1] if tries else None)
    if last is None:
        return ComparedTask(task.status, None, None, 0, "", "")
    began = last.started_at
    return ComparedTask(
        task.status,
        None if began is None else began - last.scheduled_at,
        None if began is None or last.ended_at is None else last.ended_at - began,
        len(tries),
        last.worker,
        last.pk,
    )


def _document_differences(one: Run, other: Run, name: str) -> list[Difference] | None:
    if max(getattr(one, f"{name}_size"), getattr(other, f"{name}_size")) > LARGE_DOCUMENT_BYTES:
        return None
    return find_differences(getattr(one, name), getattr(other, name))


def find_run_id(text: str, run: Run) -> str:
    """Return the id of the run that a text names: by its id, its correlation id, or the beginning of its id.

    Of several runs with a correlation id, those of the same definition come first, then the newest. A text that names
    no run that the actor may see is returned as it is.
    """
    among = visible(Run.objects.all())
    if not text or among.filter(pk=text).exists():
        return text
    correlated = among.filter(correlation_id=text).exclude(correlation_id="").exclude(pk=run.pk)
    prefixed = among.filter(pk__gte=text, pk__lte=text + LAST_ID_PART, pk__startswith=text)
    for candidates in (correlated.filter(name=run.name), correlated, prefixed):
        if found := candidates.order_by("-created_at").values_list("pk", flat=True).first():
            return found
    return text


def comparison_candidates(run: Run) -> dict[str, str]:
    """Return the ids of runs to compare with: the last success, the last failure and the previous run."""
    same = visible(Run.objects.of_definition(run.name)).exclude(pk=run.pk).order_by("-created_at", "-id")
    found = {
        "last success": same.filter(status__in=SUCCESS_STATUSES),
        "last failure": same.filter(status__in=FAILURE_STATUSES),
        "previous": same.filter(created_at__lte=run.created_at),
    }
    ids = {name: rows.values_list("pk", flat=True).first() for name, rows in found.items()}
    return {name: id for name, id in ids.items() if id}
