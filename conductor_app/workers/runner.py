"""Run the built-in workers: claim tasks, execute them, and report the results, without the network."""

import logging
from collections.abc import Callable, Iterable
from socket import gethostname

from .. import fault_points
from ..access.redaction import redact
from ..core.reports import Report
from ..core.step_types.queued import type_of_queue
from ..engine.tasks import task_commands
from ..models.claimed_attempts import ClaimedAttempt
from ..telemetry.log_context import log_context
from . import WORKERS
from .worker import WorkResult

log = logging.getLogger(__name__)

WORKER_ID = f"built-in@{gethostname()}"
_running_attempts: dict[str, ClaimedAttempt] = {}
"""The attempts that the threads of this process execute."""
REPORT_STATUSES = {"FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD"}


def run_built_in_workers(
    is_stopping: Callable[[], bool] = lambda: False, queues: Iterable[str] = tuple(WORKERS)
) -> int:
    """Execute tasks of built-in workers until these queues are empty. Returns the number of executed tasks."""
    count = 0
    for queue in queues:
        while not is_stopping() and (claimed := claim_one(queue)):
            for attempt in claimed:
                run_attempt(attempt)
                count += 1
    return count


def claim_one(queue: str, wait_ms: int = 0) -> list[ClaimedAttempt]:
    """Claim one task of a built-in worker's queue, or none."""
    return task_commands.claim_tasks(queue, worker=WORKER_ID, wait_ms=wait_ms)


def run_attempt(attempt: ClaimedAttempt) -> bool:
    """Execute an attempt and report its result. Returns False if the attempt had ended already."""
    with log_context(_type_of(attempt), run_id=attempt.run_id, task_id=attempt.task_id, attempt_id=attempt.id):
        _running_attempts[attempt.id] = attempt
        try:
            return _run_and_report(attempt)
        finally:
            _running_attempts.pop(attempt.id, None)


def release_unfinished() -> int:
    """Release the unfinished attempts of this process before it ends. Returns their number.

    If a thread still completes its attempt, the report is accepted unless another worker reports first. Other results
    are dropped.
    """
    released_count = 0
    for attempt in list(_running_attempts.values()):
        lease = attempt.scheduled_at
        release = Report("IN_PROGRESS", worker=WORKER_ID, merges=True, is_kept=False, lease=lease)
        try:
            released_count += task_commands.report_task(attempt.run_id, attempt.id, release, WORKER_ID)
            _running_attempts.pop(attempt.id, None)
        except Exception:
            # This attempt is released when its lease expires. The others can still be released now.
            log.exception("attempt_not_released", extra={"run_id": attempt.run_id, "attempt_id": attempt.id})
    return released_count


def _run_and_report(attempt: ClaimedAttempt) -> bool:
    secret_names = attempt.task.step_state.get("secrets", ())
    outcome = _perform(attempt)
    if outcome is None:
        return False
    fault_points.reach("work-performed")
    if attempt.id not in _running_attempts and outcome.status != "COMPLETED":
        # The attempt was released in the meantime, so its failure may be due to the end of this process.
        return False
    # Outputs are masked by name. Error messages have no names, so masked values are redacted in them.
    masked = getattr(attempt, "masked", ()) if outcome.status.startswith("FAILED") else ()
    report = Report(
        REPORT_STATUSES.get(outcome.status, outcome.status),
        redact(outcome.output, secret_names, masked),
        redact(outcome.reason, secret_names, masked),
        outcome.callback_seconds,
        WORKER_ID,
        is_kept=not outcome.callback_seconds,
        lease=attempt.scheduled_at,
    )
    is_accepted = task_commands.report_task(attempt.run_id, attempt.id, report, WORKER_ID)
    if is_accepted and (kind := WORKERS.get(_type_of(attempt))):
        kind.finish(attempt, outcome)
    return is_accepted


def _type_of(attempt: ClaimedAttempt) -> str:
    """Return the type that executes an attempt: that of the queue from which the worker has claimed it."""
    return type_of_queue(attempt.queue)


def _perform(attempt: ClaimedAttempt) -> WorkResult | None:
    kind = _type_of(attempt)
    try:
        return WORKERS[kind].work_on(attempt)
    except Exception as error:
        # The attempt fails and can be retried, instead of being blocked until its lease expires.
        log.exception("built_in_worker_failed", extra={"attempt_id": attempt.id})
        return WorkResult("FAILED", {}, f"The built-in {kind} worker failed: {type(error).__name__}.")
