"""The tasks of a run as time spans: few facts of many tasks, read in one statement."""

from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from ...core.states import TASK
from ...core.step_structure import DEFAULT_TYPE
from ...models import Attempt, Task

MAX_SPANS = 10_000
"""Tasks of a run that are read, newest first."""
COLUMNS = ("pk", "attempt_id", "ref", "iteration_path", "created_at", "seq", "type", "branch_head", "status", "name")


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """One task as a time span.

    `branch_head`: the head of its branch, if the task belongs to a dynamic fork. `joined_by`: the join after the branch
    that ends with it. `attempt_id`: its newest attempt.
    """

    key: str
    ref: str
    begin: int
    end: int
    seq: int
    type: str = DEFAULT_TYPE
    iteration_path: tuple[str, ...] = ()
    branch_head: str = ""
    status: str = "COMPLETED"
    name: str = ""
    task_id: str = ""
    attempt_id: str = ""
    joined_by: str = ""

    @property
    def duration_ms(self) -> int:
        return self.end - self.begin

    @property
    def is_open(self) -> bool:
        return self.status in TASK.open


def spans_of_run(run_id: str, now: int) -> list[TaskSpan]:
    """Return the tasks of a run in the order of their creation; one more than MAX_SPANS if there are more.

    A span ends with the newest attempt of its task; that of an open task ends now.
    """
    return spans_of_runs([run_id], now).get(run_id, [])


def spans_of_runs(run_ids: list[str], now: int, most: int = MAX_SPANS) -> dict[str, list[TaskSpan]]:
    """Return the newest tasks of some runs by run id, `most` tasks in all and one more if there are more."""
    ended = Attempt.objects.filter(pk=OuterRef("attempt_id")).values("ended_at")[:1]
    rows = Task.objects.filter(run_id__in=run_ids).annotate(end=Subquery(ended)).order_by("-seq")
    found: dict[str, list[TaskSpan]] = {}
    for run_id, *facts in rows.values_list("run_id", *COLUMNS, "joined_by", "end")[: most + 1]:
        found.setdefault(run_id, []).append(_task_span(facts, now))
    return {run_id: spans[::-1] for run_id, spans in found.items()}


def _task_span(facts: list, now: int) -> TaskSpan:
    task_id, attempt_id, ref, path, begin, seq, type, head, status, name, joined_by, end = facts
    iteration_path = tuple(path.split(".")) if path else ()
    key = "__".join((ref, *iteration_path))
    ended_at = (now if status in TASK.open else begin) if end is None else end
    return TaskSpan(
        key,
        ref,
        begin,
        max(ended_at, begin),
        seq,
        type,
        iteration_path,
        head,
        status,
        name,
        task_id,
        attempt_id,
        joined_by,
    )
