"""A child goes on again: the run that waited for it does too (execution §7.6)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..decision_context import DecisionContext
from ..effects import Effect, SendMessage, TransitionRun, UpdateRun
from ..failure_scopes import is_handled
from ..snapshot import Run, Task
from ..step_types import step_type_of
from .downstream import Downstream, inside_of, later
from .reopening import (
    ended_badly,
    fresh_facts,
    is_reopened,
    is_resumable,
    need_whole,
    origin,
    terminations,
    told_parent,
)
from .retry import Reach, tried_again


@dataclass(frozen=True, slots=True)
class Repair:
    """The command of the message that a child was opened again. `attempt`: the one that has waited for it.

    `asked`: the run that an operator named where the child's task was found below it (`run`), and what is new for
    that run (`input`, `correlation_id`): up to there all runs are opened, optional tasks or not.
    """

    attempt: str
    child: str
    how: str
    asked: dict[str, Any] = field(default_factory=dict)

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        need_whole(run)
        task = run.task_of_attempt(self.attempt)
        if task is None or task.attempt.child_id != self.child:
            return
        if not self.asked and (task.step.optional or _failure_is_handled(run, task)):
            return
        repaired = self._in_open_run if run.is_open else self._in_ended_run
        if effects := list(repaired(run, task, ctx, now)):
            yield from effects
            # The child may have ended again before this was heard: whoever hears this message looks.
            yield SendMessage(run.id, "child_ended", {"attempt": self.attempt, "child": self.child})

    def _in_open_run(self, run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        """A run that goes on is not set back: only a task that has no good end yet waits again."""
        if task.succeeded or task.attempt.is_open:
            return
        if not task.is_open:
            # What came after a permissive failure is there already, and must be looked for from now on.
            yield UpdateRun({"last_retried_at": now})
        yield from step_type_of(task.step.type).reopened(task, ctx, now)

    def _in_ended_run(self, run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        yield TransitionRun("reopen", now, {**fresh_facts(now), **self._new_facts(run)})
        yield from waiting_again(run, task, ctx, now)
        yield from told_parent(run, self.how, self.asked if self.asked.get("run") != run.id else None)

    def _new_facts(self, run: Run) -> dict[str, Any]:
        if self.asked.get("run") != run.id:
            return {}
        return {name: self.asked[name] for name in ("input", "correlation_id") if self.asked.get(name) is not None}


def waiting_again(run: Run, task: Task, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Let the task wait for its child again, and try again what had ended badly.

    Completed work stays, also where it came after the child had succeeded. Only what handled the child's failure is
    deleted, and what led to a TERMINATE, which would end the run again at once.
    """
    trail, ends = Downstream(run, task.key), terminations(run)
    is_undone = _failure_is_handled(run, task) or any(end.key in trail.gone for end in ends)
    trails = [trail] if is_undone else []
    covered = {key for trail in trails for key in trail.gone}
    causes = [origin(run, end, spared=task.key) for end in ends if end.key not in covered]
    reach = Reach.of([*trails, *(Downstream(run, cause.key) for cause in causes)])
    if task.succeeded and not is_undone:
        _wait_with_it(run, trail, reach)
    yield from tried_again(run, [task, *ended_badly(run)], reach, ctx, now, resumes=True, child_of=task.key)


def _failure_is_handled(run: Run, task: Task) -> bool:
    return not task.succeeded and is_handled(run, task)


def _wait_with_it(run: Run, trail: Downstream, reach: Reach) -> None:
    """Open again what joins the task's result, and enter later what had failed right after it.

    A loop stays as it is where it has gone on to later iterations.
    """
    inside = inside_of(run)
    for key, iteration in trail.waiting.items():
        if iteration is None or not later(inside, run.tasks[key], iteration):
            reach.waiting.setdefault(key, iteration)
    open_again = {trail.start, *reach.waiting}
    led_by_others = {
        key
        for task in run.tasks.values()
        if task.key not in open_again
        for key in step_type_of(task.step.type).successors(task)
    }
    for task in ended_badly(run):
        is_plain = not (is_reopened(task) or is_resumable(task))
        if task.key in trail.gone and is_plain and task.key not in led_by_others:
            reach.gone.add(task.key)
