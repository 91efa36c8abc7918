"""Retry failed and canceled tasks from the current position of a run (execution §7.3)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..decision_context import DecisionContext
from ..definition import Key
from ..effects import Effect, OpenAttempt, ResolveTask, TransitionRun
from ..errors import Conflict, NotAllowedInState
from ..failure_scopes import is_failure_handled
from ..rules.advance import pending_entries
from ..rules.schedule_retry import next_attempt, reopen_attempt
from ..snapshot import Run, Task
from ..states import CANCELED, RUN, TIMED_OUT
from ..step_types import step_type_of
from .downstream import Downstream
from .reopen import (
    creation_order,
    delete_tasks,
    failed_tasks,
    find_restart_point,
    is_completed_externally,
    is_reopened,
    is_resumable,
    notify_parent,
    reopen_tasks,
    reopened_run_facts,
    require_whole_run,
    superseded_keys,
    terminate_tasks,
)


@dataclass(frozen=True, slots=True)
class Retry:
    """Command that retries failed and canceled tasks.

    `resumes`: tasks that wait for a child run resume it; otherwise each starts another one. `is_asked`: the parent sent
    the command and waits for this run already.
    """

    resumes: bool = False
    is_asked: bool = False

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        yield from _retry_effects(run, ctx, now, self.resumes)
        if not self.is_asked:
            yield from notify_parent(run, "retried")


def _retry_effects(run: Run, ctx: DecisionContext, now: int, resumes: bool) -> Iterator[Effect]:
    if run.is_open:
        raise NotAllowedInState(
            f"Workflow {run.id} is {run.status}. Only a failed, timed-out or terminated workflow can be retried."
        )
    RUN.after(run.status, "retry")
    require_whole_run(run)
    failed, ends = failed_tasks(run), terminate_tasks(run)
    is_done = all(is_failure_handled(run, task) for task in failed) and not _can_advance(run)
    if not ends and run.status != TIMED_OUT and is_done:
        raise Conflict(f"There are no retryable tasks in workflow {run.id}. Restart it, or rerun it from a task.")
    trails = [Downstream(run, _retry_origin(run, end).key) for end in ends]
    yield TransitionRun("retry", now, reopened_run_facts(now))
    yield from retry_tasks(run, failed, RetryScope.of(trails), ctx, now, resumes)


def _can_advance(run: Run) -> bool:
    """Return True if control is at a step without a task, as after RunCannotContinue."""
    return any(key not in run.tasks for key, _source in pending_entries(run))


def _retry_origin(run: Run, end: Task) -> Task:
    """Return the task to retry so that this TERMINATE does not end the run again at once."""
    cause = find_restart_point(run, end)
    if not is_completed_externally(cause):
        raise Conflict(
            f"Workflow {run.id} would end again at once, because no task before {end.key} can be retried. "
            "Restart it, or rerun it with another input."
        )
    return cause


@dataclass(frozen=True, slots=True)
class RetryScope:
    """The tasks that are deleted (`gone`), opened again (`waiting`) and retried first (`starts`).

    `waiting` holds the iteration in which a loop continues.
    """

    gone: set[Key]
    waiting: dict[Key, int | None]
    starts: tuple[Key, ...] = ()

    @classmethod
    def of(cls, trails: Sequence[Downstream]) -> "RetryScope":
        """Return the scope of several downstream sets. Their starts stay and are retried."""
        return cls(
            {key for trail in trails for key in trail.gone if key != trail.start},
            {key: iteration for trail in trails for key, iteration in trail.waiting.items()},
            tuple(trail.start for trail in trails),
        )


def retry_tasks(
    run: Run,
    failed: Iterable[Task],
    reach: RetryScope,
    ctx: DecisionContext,
    now: int,
    resumes: bool = False,
    child_of: Key | None = None,
) -> Iterator[Effect]:
    """Retry each failed task and each start of the scope, and delete the tasks after the starts.

    `resumes`: tasks that wait for a child run resume it instead of starting another. `child_of`: the task whose child
    was opened again and caused this; the canceled tasks beside it are reopened under their ids.
    """
    gone, waiting = set(reach.gone), dict(reach.waiting)
    left: dict[Key, Task] = {}
    for task in (*failed, *(run.tasks[start] for start in reach.starts)):
        if task.key in gone or (task.key != child_of and is_failure_handled(run, task, waiting)):
            continue
        left[task.key] = task
        is_resumed = task.key == child_of or (resumes and is_resumable(task))
        if task.key not in waiting and (is_resumed or is_reopened(task)):
            waiting[task.key] = step_type_of(task.step.type).failed_iteration(task)
            gone |= superseded_keys(run, task)
    waiting = {key: iteration for key, iteration in waiting.items() if key not in gone}
    yield from delete_tasks(run, gone)
    yield from reopen_tasks(run, waiting, ctx, now, resumes, child_of)
    for task in sorted(
        (task for key, task in left.items() if key not in waiting and key not in gone), key=creation_order
    ):
        yield ResolveTask(task.key, "reopen")
        if child_of is not None and task.attempt.status == CANCELED:
            yield from reopen_attempt(task, ctx, now)
        else:
            yield OpenAttempt(task.key, next_attempt(task, ctx, now, delay=0, first_at=now))
