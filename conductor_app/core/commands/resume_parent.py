"""A child goes on again: the run that waited for it does too (execution §7.6)."""

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
    """The command of the message that a child was opened again. `attempt`: the one that has waited for it.

    `asked`: the run that an operator named where the child's task was found below it (`run`), and what is new for
    that run (`input`, `correlation_id`): up to there all runs are opened, optional tasks or not.
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
            # The child may have ended again before this was heard: whoever hears this message looks.
            yield SendMessage(run.id, "child_ended", {"attempt": self.attempt, "child": self.child})

    def _resume_in_open_run(self, run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """A run that goes on is not set back: only a task that has no good end yet waits again."""
        if task.succeeded or task.attempt.is_open:
            return
        if not task.is_open:
            # What came after a permissive failure is there already, and must be looked for from now on.
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
    """Let the task wait for its child again, and try again what had ended badly.

    Completed work stays, also where it came after the child had succeeded. Only what handled the child's failure is
    deleted, and what led to a TERMINATE, which would end the run again at once.
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
    """Open again what joins the task's result, and enter later what had failed right after it.

    A loop stays as it is where it has gone on to later iterations.
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
