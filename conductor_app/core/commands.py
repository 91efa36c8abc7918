"""What operators may ask of a run: pause, resume, terminate, retry."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .decide import nothing
from .effects import Effect, MoveAttempt, MoveRun, OpenAttempt, ResolveTask, UpdateRun, UpdateTask
from .errors import Conflict, NotAllowedInState
from .knowledge import Knowledge
from .moments import next_clock
from .questions import Asked, Whole
from .rules.endings import end_run
from .rules.retry import next_attempt
from .snapshot import Run, Task
from .states import CANCELED, FAILED, PAUSED, RUN, TERMINATED, TIMED_OUT
from .steps import kind_of

__all__ = ["Abandon", "nothing", "pause", "release", "resume", "retry", "terminate"]


def pause(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """Hold the run: nothing new is scheduled until it is resumed."""
    if run.status != PAUSED:
        yield MoveRun("pause", now)


def resume(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """Let a paused run go on; its own time starts anew (execution §7.2)."""
    yield MoveRun("resume", now, {"last_retried_at": now})


def terminate(reason: str = "", with_failure: bool = False):
    """The command that stops a run for good; its failure workflow starts only if that is asked for."""

    def command(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
        if run.status == TERMINATED:
            return
        if not run.is_open:
            RUN.after(run.status, "terminate")
            yield MoveRun("terminate", now, {"reason": reason or run.reason})
            return
        yield from end_run(run, know, now, "terminate", reason, with_failure=with_failure)

    return command


class Abandon:
    """The command that ends a run which cannot be decided: it fails, with nothing evaluated."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
        if run.is_open:
            event = "terminate" if run.status == PAUSED else "fail"
            yield from end_run(run, know, now, event, self.reason, output={}, with_failure=False)


def release(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """A run that its limit held goes on (execution §5.4)."""
    if not (run.is_held and run.is_open):
        return
    yield UpdateRun({"is_held": False})
    for task in run.open_tasks:
        facts: dict[str, Any] = {"visible_at": now + task.attempt.delay_ms, "pending_since": now}
        due_at = next_clock(task.step.policy, replace(task.attempt, **facts), now)
        yield UpdateTask(task.key, attempt_facts={**facts, "due_at": due_at})


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
