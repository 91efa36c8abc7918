"""Hold a run, let it go on, end it."""

from collections.abc import Iterator
from typing import Any

from ..decide import Command
from ..decision_context import DecisionContext
from ..effects import Effect, ResolveTask, TransitionRun, UpdateRun, UpdateTask, apply_effects
from ..frozen import fast_replace
from ..rules.finish_run import end_run
from ..rules.retry import give_up
from ..snapshot import Run
from ..states import COMPLETED, PAUSED, RUN, TERMINATED
from ..timers import next_timer
from .reopen import require_whole_run


def pause_run(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Hold the run: nothing new is scheduled until it is resumed."""
    if run.status != PAUSED:
        yield TransitionRun("pause", now)


def resume_run(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Let a paused run go on; its own time starts anew (execution §7.2)."""
    yield TransitionRun("resume", now, {"last_retried_at": now})


def terminate_run(reason: str = "", with_failure: bool = False):
    """The command that stops a run for good; its failure workflow starts only if that is asked for."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if run.status == TERMINATED:
            return
        if not run.is_open:
            RUN.after(run.status, "terminate")
            yield TransitionRun("terminate", now, {"reason": reason or run.reason})
            return
        yield from end_run(run, ctx, now, "terminate", reason, with_failure=with_failure)

    return command


def terminate_if_open(reason: str):
    """The command of the message that nobody waits for this run any more: what has ended keeps its end."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if run.is_open:
            yield from end_run(run, ctx, now, "terminate", reason, with_failure=False)

    return command


class FailUndecidableRun:
    """The command that ends a run which cannot be decided or written: it fails, and its output is not evaluated.

    `report`: the command that could not be decided to its end; its own effects are kept.
    """

    def __init__(self, reason: str, with_failure: bool = False, report: Command | None = None) -> None:
        self.reason, self.with_failure, self.report = reason, with_failure, report

    def __call__(self, run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if self.report is not None:
            said = self._report_effects(self.report, run, ctx, now)
            yield from said
            run = apply_effects(run, said)
            ctx = DecisionContext(run, ctx.data)
        if run.is_open:
            event = "terminate" if run.status == PAUSED else "fail"
            yield from end_run(run, ctx, now, event, self.reason, output={}, with_failure=self.with_failure)

    def _report_effects(self, command: Command, run: Run, ctx: DecisionContext, now: int) -> list[Effect]:
        """What the command asks for; a task whose attempt is over because of it has ended as that has."""
        require_whole_run(run)
        said = list(command(run, ctx, now))
        for task in apply_effects(run, said).open_tasks:
            if task.attempt.status == COMPLETED:
                said.append(ResolveTask(task.key, "complete"))
            elif task.attempt.ended_badly:
                said.append(give_up(task))
        return said


def release_held_run(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """A run that its limit held goes on (execution §5.4)."""
    if not (run.is_held and run.is_open):
        return
    yield UpdateRun({"is_held": False})
    for task in run.open_tasks:
        facts: dict[str, Any] = {"visible_at": now + task.attempt.delay_ms, "pending_since": now}
        due_at = next_timer(task.step.policy, fast_replace(task.attempt, **facts), now)
        yield UpdateTask(task.key, attempt_facts={**facts, "due_at": due_at})
