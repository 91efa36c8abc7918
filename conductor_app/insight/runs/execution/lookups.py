"""Lookups of runs and attempts for API replies. Errors use Conductor's texts."""

from collections.abc import Collection
from typing import NoReturn

from ....core.errors import NotFound
from ....models import Attempt, Run, TaskLog

PAYLOADS = ("input", "output", "variables")


def find_run(run_id: str, payloads: Collection[str] = ()) -> Run:
    """Return a run with the named payloads (`input`, `output`, `variables`). Runs one statement.

    Raises:
        NotFound: when no run has this id.
    """
    runs = Run.objects.defer(*(name for name in PAYLOADS if name not in payloads))
    return runs.filter(pk=run_id).first() or raise_run_not_found(run_id)


def raise_run_not_found(run_id: str) -> NoReturn:
    """Raise the error for an unknown run, in Conductor's words.

    Raises:
        NotFound: always.
    """
    raise NotFound(f"No such workflow found by id: {run_id}")


def find_attempt(attempt_id: str) -> Attempt:
    """Return an attempt with its task and run.

    Raises:
        NotFound: when no attempt of a run has this id.
    """
    found = Attempt.objects.of_runs().filter(pk=attempt_id).select_related("task", "run")
    attempt = found.defer("run__input", "run__output", "run__variables").first()
    if attempt is None:
        raise NotFound(f"Task not found for taskId: {attempt_id}")
    return attempt


def load_logs(attempt_id: str) -> list[dict[str, object]]:
    """Return the log of an attempt as Conductor's TaskExecLog, oldest line first (api §3.8)."""
    lines = TaskLog.objects.filter(attempt_id=attempt_id).order_by("at", "id").values_list("line", "at")
    return [{"log": line, "taskId": attempt_id, "createdTime": at} for line, at in lines]
