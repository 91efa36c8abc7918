"""Serves the built-in workers: claim, perform, report, like any worker, minus the network."""

import logging
from collections.abc import Callable
from socket import gethostname

from ..access.secrets import hidden
from ..core.reports import Report
from ..engine import tasks
from ..models import Attempt
from ..telemetry.about import doing
from . import WORKERS
from .worker import Outcome

log = logging.getLogger(__name__)

NAME = f"built-in@{gethostname()}"
SPELLED = {"FAILED_WITH_TERMINAL_ERROR": "FAILED_FOR_GOOD"}


def work_off(is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Do the built-in workers' tasks until none is left; returns how many were done."""
    done = 0
    for task_type in WORKERS:
        while not is_stopping() and (claimed := tasks.claim(task_type, worker=NAME, wait_ms=0)):
            for attempt in claimed:
                work(attempt)
                done += 1
    return done


def work(attempt: Attempt) -> bool:
    """Do one task and report it; False where it was over already."""
    with doing(attempt.task.type, run_id=attempt.run_id, task_id=attempt.task_id, attempt_id=attempt.id):
        return _worked(attempt)


def _worked(attempt: Attempt) -> bool:
    named = attempt.task.memo.get("secrets", ())
    outcome = _performed(attempt)
    report = Report(
        SPELLED.get(outcome.status, outcome.status),
        hidden(outcome.output, named),
        hidden(outcome.reason, named),
        outcome.callback_seconds,
        NAME,
        is_kept=not outcome.callback_seconds,
    )
    return tasks.report(attempt.run_id, attempt.id, report, NAME)


def _performed(attempt: Attempt) -> Outcome:
    try:
        worker = WORKERS[attempt.task.type]
        return worker.perform_again(worker.given(attempt), attempt.poll_count)
    except Exception as error:
        # A fault of ours must not leave the task to wait for its lease: it fails, and its policy decides.
        log.exception("built_in_worker_failed", extra={"attempt_id": attempt.id})
        return Outcome("FAILED", {}, f"The built-in {attempt.task.type} worker failed: {type(error).__name__}.")
