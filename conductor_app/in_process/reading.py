"""Read workflows for the Python API, and wait for their ends."""

from collections.abc import Iterable
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from django.db.transaction import TransactionManagementError

from ..core.decision_context import conductor_status
from ..core.states import RUN
from ..db.statements import is_in_transaction, read_snapshot
from ..notifications import wait_in_thread
from ..payloads.commands import load_payload
from ..runs.documents.workflows import find_run
from ..runs.models import Attempt, Run, RunLabel
from ..runs.store import loading
from ..tasks.commands.waits import MAX_WAIT_SECONDS, begin_end_wait
from .records import WorkflowRun, WorkflowTask

PAYLOADS = ("input", "output", "variables")


def read_run(run_id: str, with_tasks: bool) -> WorkflowRun:
    """Return a run, with its tasks if asked for, from one snapshot of the database.

    Raises:
        NotFound: when there is no such run.
        Busy: when the storage of large payloads cannot be reached.
    """
    with read_snapshot():
        row = find_run(run_id, PAYLOADS)
        labels = tuple(RunLabel.objects.filter(run_id=run_id).order_by("name").values_list("name", flat=True))
        attempts = list(_newest_attempts(run_id)) if with_tasks else []
    return _record(row, labels, map(_task_record, attempts))


def _newest_attempts(run_id: str) -> Iterable[Attempt]:
    attempts = Attempt.objects.filter(run_id=run_id).select_related("task").order_by("task__seq", "number")
    return {attempt.task_id: attempt for attempt in attempts if attempt.pk == attempt.task.attempt_id}.values()


def _record(row: Run, labels: tuple[str, ...], tasks: Iterable[WorkflowTask]) -> WorkflowRun:
    return WorkflowRun(
        row.pk,
        row.name,
        row.version,
        row.status,
        row.reason,
        load_stored(row.input, row.input_path),
        load_stored(row.output, row.output_path),
        row.variables or {},
        row.correlation_id,
        row.priority,
        row.started_by,
        labels,
        _moment(row.created_at),
        None if row.ended_at is None else _moment(row.ended_at),
        tuple(tasks),
    )


def _task_record(attempt: Attempt) -> WorkflowTask:
    task = attempt.task
    return WorkflowTask(
        str(task),
        task.name,
        task.type,
        conductor_status(attempt.status, task.status),
        attempt.pk,
        attempt.reason,
        load_stored(attempt.input, attempt.input_path),
        load_stored(attempt.output, attempt.output_path),
    )


def load_stored(stored: Any, path: str) -> dict[str, Any]:
    """Return a payload of a row, or the one that the storage of large payloads has for it."""
    return (load_payload(path) if path else stored) or {}


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def wait_until_ended(run_id: str, timeout: float, with_tasks: bool) -> WorkflowRun:
    """Wait until a run has ended, and return it. `timeout`: in seconds.

    Raises:
        NotFound: when there is no such run.
        TimeoutError: when the run has not ended within the timeout.
        TransactionManagementError: when it must wait within a transaction, in which it could not see the end.
    """
    ends_at = monotonic() + timeout
    while loading.status_of(run_id) not in RUN.final:
        if is_in_transaction():
            raise TransactionManagementError(
                f"Workflow {run_id} has not ended. A transaction cannot see its end: wait after the commit."
            )
        left = ends_at - monotonic()
        if left <= 0:
            raise TimeoutError(f"Workflow {run_id} has not ended within {timeout:g} s.")
        wait_in_thread(begin_end_wait(run_id, min(left, MAX_WAIT_SECONDS)))
    return read_run(run_id, with_tasks)
