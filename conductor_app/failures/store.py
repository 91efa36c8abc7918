"""Storage of the failures of a decision, in its transaction: one statement if something has failed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.failure_grouping import MAX_LENGTH, build_of, fingerprint, informative_line
from ..core.snapshot import Attempt, Run, Task
from ..core.states import EXPIRED, FAILED, FAILED_FOR_GOOD, RUN
from ..core.step_types import step_type_of
from ..db import fields
from ..db.statements import MAX_BATCH_ROWS, Inserts, execute, serialize
from .models import Failure

FAILED_STATUSES = frozenset((FAILED, FAILED_FOR_GOOD, EXPIRED))
COLUMNS = (
    "fingerprint", "run_id", "attempt_id", "definition", "version", "ref", "message", "queue", "worker", "build", "at",
    "task_id",
)  # fmt: skip


def write_failures(
    writes: Inserts, before: Run, touched: Mapping[str, tuple[Attempt, Task]], after: Run, now: int
) -> None:
    """Write the failures of this decision. A sweep groups them later."""
    previous = {task.attempt.id: task.attempt for task in before.tasks.values()}
    failed = [
        _failure_row(after, task.key.ref, attempt.id, attempt.reason, attempt.queue, attempt.worker, now)
        for id, (attempt, task) in touched.items()
        if attempt.status in FAILED_STATUSES
        and is_new_failure(attempt, previous.get(id))
        and not _is_consequence(attempt, task)
    ]
    failed += [] if failed else list(_run_failure(before, after, now))
    if failed:
        writes.insert(Failure, COLUMNS, failed)


def is_new_failure(attempt: Attempt, previous: Attempt | None) -> bool:
    """Return True if this decision ended the attempt. `previous`: the attempt of that id before the decision."""
    return previous is None or previous.is_open or attempt.number != previous.number


def _is_consequence(attempt: Attempt, task: Task) -> bool:
    """Return True if the attempt failed because of an earlier failure, which is recorded itself."""
    return step_type_of(task.step.type).forwards_failures or bool(attempt.child_id)


def _run_failure(before: Run, after: Run, now: int) -> Iterator[list[Any]]:
    """Yield the failure of a run that failed without a failed task: by its timeout or by a TERMINATE."""
    ended = before.status in RUN.open and after.status in RUN.final
    blamed = after.task_of_attempt(after.failed_attempt_id)
    is_recorded = after.failed_attempt_id and (blamed is None or blamed.attempt.status in FAILED_STATUSES)
    if ended and after.status in ("FAILED", "TIMED_OUT") and not is_recorded:
        yield _failure_row(after, "", "", after.reason, "", "", now)


def _failure_row(of: Run, ref: str, attempt_id: str, reason: str, queue: str, worker: str, now: int) -> list[Any]:
    name = of.definition.name
    message = fields.strip_nul(informative_line(reason, MAX_LENGTH))
    return [
        fingerprint(name, ref, message), of.id, attempt_id, name, of.definition.version, ref, message,
        queue, worker, build_of(worker), now, "",
    ]  # fmt: skip


def serialize_grouping() -> None:
    """Take the lock under which failure groups are counted and merged."""
    serialize("failures")


def ungrouped_failures(limit: int) -> list[Failure]:
    """Return failures without a group, earliest first."""
    serialize_grouping()
    return list(Failure.objects.filter(group__isnull=True).order_by("id")[:limit])


def add_to_counts(counts: Sequence[tuple[int, int, int, str, int]]) -> None:
    """Add to the stored counts. Each count has a group, an hour, a version, a build, and the number to add."""
    for start in range(0, len(counts), MAX_BATCH_ROWS):
        chunk = counts[start : start + MAX_BATCH_ROWS]
        execute(
            "INSERT INTO conductor_hourlyfailurecount (group_id, hour_at, version, build, count) VALUES "
            f"{', '.join(['(%s, %s, %s, %s, %s)'] * len(chunk))} ON CONFLICT (group_id, hour_at, version, build) "
            "DO UPDATE SET count = conductor_hourlyfailurecount.count + excluded.count",
            [value for count in chunk for value in count],
        )
