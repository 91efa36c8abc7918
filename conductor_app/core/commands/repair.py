"""A child goes on again: the run that waited for it does too (execution §7.6)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..effects import Effect, MoveRun, Send, UpdateRun
from ..knowledge import Knowledge
from ..scopes import is_handled
from ..snapshot import Run, Task
from ..steps import kind_of
from .reopening import ended_badly, fresh_facts, need_whole, origin, terminations, told_parent
from .retry import tried_again
from .trail import Trail


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

    def __call__(self, run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
        need_whole(run)
        task = run.task_of_attempt(self.attempt)
        if task is None or task.attempt.child_id != self.child:
            return
        if not self.asked and (task.step.optional or is_handled(run, task)):
            return
        repaired = self._in_open_run if run.is_open else self._in_ended_run
        if effects := list(repaired(run, task, know, now)):
            yield from effects
            # The child may have ended again before this was heard: whoever hears this message looks.
            yield Send(run.id, "child_ended", {"attempt": self.attempt, "child": self.child})

    def _in_open_run(self, run: Run, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        """A run that goes on is not set back: only a task that has no good end yet waits again."""
        if task.succeeded or task.attempt.is_open:
            return
        if not task.is_open:
            # What came after a permissive failure is there already, and must be looked for from now on.
            yield UpdateRun({"last_retried_at": now})
        yield from kind_of(task.step.type).reopened(task, know, now)

    def _in_ended_run(self, run: Run, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        yield MoveRun("reopen", now, {**fresh_facts(now), **self._new_facts(run)})
        yield from waiting_again(run, task, know, now)
        yield from told_parent(run, self.how, self.asked if self.asked.get("run") != run.id else None)

    def _new_facts(self, run: Run) -> dict[str, Any]:
        if self.asked.get("run") != run.id:
            return {}
        return {name: self.asked[name] for name in ("input", "correlation_id") if self.asked.get(name) is not None}


def waiting_again(run: Run, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
    """The task waits for its child again, and what else had ended badly is tried again.

    A result that is waited for anew was none: what came of a task that had succeeded, or of a failure that was
    handled, is taken back.
    """
    trail, ends = Trail(run, task.key), terminations(run)
    trails = [trail] if task.succeeded or is_handled(run, task) or any(end.key in trail.gone for end in ends) else []
    covered = {key for trail in trails for key in trail.gone}
    causes = [origin(run, end, spared=task.key) for end in ends if end.key not in covered]
    trails += [Trail(run, cause.key) for cause in causes]
    yield from tried_again(run, [task, *ended_badly(run)], trails, know, now, in_place=[task.key])
