"""Open a run again when a child run that it waited for is opened again (execution §7.6)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..decision_context import DecisionContext
from ..effects import Effect, SendMessage, TransitionRun, UpdateRun
from ..failure_scopes import is_failure_handled
from ..snapshot import Run, Task
from ..step_types import step_type_of
from .downstream import Downstream, tasks_after_iteration, tasks_by_loop
from .reopen import (
    failed_tasks,
    find_restart_point,
    is_reopened,
    is_resumable,
    notify_parent,
    reopened_run_facts,
    require_whole_run,
    terminate_tasks,
)
from .retry import RetryScope, retry_tasks


@dataclass(frozen=True, slots=True)
class ResumeParent:
    """Command for the message that a child run was opened again. `attempt`: the one that waited for the child.

    `asked`: if an operator named a run above the child, that run (`run`) and its new facts (`input`, `correlation_id`).
    All runs up to it are opened again, whether the tasks are optional or not.
    """

    attempt: str
    child: str
    how: str
    asked: dict[str, Any] = field(default_factory=dict)

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        require_whole_run(run)
        task = run.task_of_attempt(self.attempt)
        if task is None or task.attempt.child_id != self.child:
            return
        if not self.asked and (task.step.optional or _failure_is_handled(run, task)):
            return
        repaired = self._resume_in_open_run if run.is_open else self._resume_in_ended_run
        if effects := list(repaired(run, task, ctx, now)):
            yield from effects
            # The child may have ended again before this message was processed. The handler of `child_ended` checks.
            yield SendMessage(run.id, "child_ended", {"attempt": self.attempt, "child": self.child})

    def _resume_in_open_run(self, run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """Let an unsuccessful task of an open run wait again; nothing else in the run changes."""
        if task.succeeded or task.attempt.is_open:
            return
        if not task.is_open:
            # The tasks after a permissive failure exist already. From now on the advance rule must check for them.
            yield UpdateRun({"last_retried_at": now})
        yield from step_type_of(task.step.type).reopen(task, ctx, now)

    def _resume_in_ended_run(self, run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        yield TransitionRun("reopen", now, {**reopened_run_facts(now), **self._new_facts(run)})
        yield from await_child_again(run, task, ctx, now)
        yield from notify_parent(run, self.how, self.asked if self.asked.get("run") != run.id else None)

    def _new_facts(self, run: Run) -> dict[str, Any]:
        if self.asked.get("run") != run.id:
            return {}
        return {name: self.asked[name] for name in ("input", "correlation_id") if self.asked.get(name) is not None}


def await_child_again(run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Let the task wait for its child again, and retry the tasks that failed.

    Completed work stays, even after the success of the child. Only the tasks that handled the child's failure, or led
    to a TERMINATE that would end the run again at once, are deleted.
    """
    trail, ends = Downstream(run, task.key), terminate_tasks(run)
    is_undone = _failure_is_handled(run, task) or any(end.key in trail.gone for end in ends)
    trails = [trail] if is_undone else []
    covered = {key for trail in trails for key in trail.gone}
    causes = [find_restart_point(run, end, spared=task.key) for end in ends if end.key not in covered]
    reach = RetryScope.of([*trails, *(Downstream(run, cause.key) for cause in causes)])
    if task.succeeded and not is_undone:
        _reopen_joins(run, trail, reach)
    yield from retry_tasks(run, [task, *failed_tasks(run)], reach, ctx, now, resumes=True, child_of=task.key)


def _failure_is_handled(run: Run, task: Task) -> bool:
    return not task.succeeded and is_failure_handled(run, task)


def _reopen_joins(run: Run, trail: Downstream, reach: RetryScope) -> None:
    """Open the joins of the task's result again, and delete the tasks that failed right after it.

    A loop that continued to later iterations stays as it is.
    """
    inside = tasks_by_loop(run)
    for key, iteration in trail.waiting.items():
        if iteration is None or not tasks_after_iteration(inside, run.tasks[key], iteration):
            reach.waiting.setdefault(key, iteration)
    open_again = {trail.start, *reach.waiting}
    led_by_others = {
        key
        for task in run.tasks.values()
        if task.key not in open_again
        for key in step_type_of(task.step.type).successors(task)
    }
    for task in failed_tasks(run):
        is_plain = not (is_reopened(task) or is_resumable(task))
        if task.key in trail.gone and is_plain and task.key not in led_by_others:
            reach.gone.add(task.key)
