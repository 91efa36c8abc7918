"""Try what failed or was canceled again, from where a run stands (execution §7.3)."""

from collections.abc import Iterator
from typing import Any

from ..effects import Effect, MoveAttempt, MoveRun, OpenAttempt, ResolveTask
from ..errors import Conflict, NotAllowedInState
from ..knowledge import Knowledge
from ..moments import next_clock
from ..questions import Asked, Whole
from ..rules.retry import next_attempt
from ..snapshot import Run, Task
from ..states import CANCELED, FAILED, RUN, TIMED_OUT
from ..steps import kind_of


def retry(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """Try what failed or was canceled again, from where the run stands (execution §7.3)."""
    _refuse_retry_unless_ended_badly(run)
    if not run.is_whole:
        raise Asked({Whole()})
    failed = sorted((task for task in _newest_by_ref(run) if task.status in (FAILED, TIMED_OUT, CANCELED)), key=_seq)
    if not failed and run.status != TIMED_OUT:
        raise Conflict(f"There are no retryable tasks in workflow {run.id}; restart it, or rerun it from a task.")
    yield MoveRun(
        "reopen", now, {"reason": "", "ended_at": None, "last_retried_at": now, "failed_attempt_id": "", "output": {}}
    )
    for number, task in enumerate(failed):
        yield from _tried_again(task, know, now, number)


def _refuse_retry_unless_ended_badly(run: Run) -> None:
    if run.is_open:
        raise NotAllowedInState(f"Workflow {run.id} is {run.status}: only one that has ended badly can be retried.")
    RUN.after(run.status, "reopen")


def _newest_by_ref(run: Run) -> list[Task]:
    newest: dict[str, Task] = {}
    for task in sorted(run.tasks.values(), key=_seq):
        newest[task.key.ref] = task
    return list(newest.values())


def _tried_again(task: Task, know: Knowledge, now: int, number: int) -> Iterator[Effect]:
    yield ResolveTask(task.key, "reopen")
    if kind_of(task.step.type).is_reopened:
        yield MoveAttempt(task.key, "reopen", now, _as_new(task, now))
    else:
        attempt = next_attempt(task, know, now, delay=0)
        yield OpenAttempt(task.key, attempt)


def _as_new(task: Task, now: int) -> dict[str, Any]:
    return {"reason": "", "ended_at": None, "due_at": next_clock(task.step.policy, task.attempt, now)}


def _seq(task: Task) -> int:
    return task.seq
