"""JOIN: waits until every task that it joins has ended."""

from collections.abc import Iterator
from typing import Any

from ..data_requests import ABSENT, Asked, Joined, Outcome, Whole
from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect, MoveAttempt, ResolveTask
from ..snapshot import Run, Task
from ..states import CANCELED, COMPLETED_WITH_ERRORS
from .base import Kind, complete, fail, held_by_engine, inputs_of
from .outcomes import outcome_of


class Join(Kind):
    """Ends with the outputs of what it joined, by reference (execution §8.7)."""

    type = "JOIN"
    waits_for_tasks = True
    is_retried = False
    is_reopened = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        fork = fork_of(know.run, step, key)
        refs = list(step.joins) if fork is None else list(fork.memo["forked"])
        memo: dict[str, Any] = {"expected": len(set(refs))}
        if fork is not None and fork.memo.get("has_cases"):
            memo["has_cases"] = True
        yield held_by_engine(step, key, know.run, now, memo=memo, input={**inputs, "joinOn": refs}, output={})

    def settle(self, task: Task, know: Knowledge, now: int) -> Iterator[Effect]:
        known = {t.key: t for t in know.run.tasks.values() if is_joined(t, task)}
        if any(t.is_open for t in known.values()) or not know.run.has_news_for(task, known):
            return
        missing = task.memo.get("expected", len(set(task.step.joins))) - len(known)
        if task.memo.get("has_cases"):
            if not know.run.is_whole:
                raise Asked({Whole()})
            # A dynamic branch that is a switch goes on in the case that was chosen, unless that is empty.
            missing += sum(bool(t.step.cases and t.memo.get("head")) for t in known.values())
        outcomes: Any
        if know.run.is_whole:
            outcomes = [] if missing <= 0 else None
        elif missing > 0 and shares_tasks(task, know.run):
            raise Asked({Whole()})
        else:
            outcomes = know.ask(Joined(task.key, frozenset(known), missing)) if missing > 0 else []
        if outcomes in (None, ABSENT):
            return
        yield from verdict(task, [*(outcome_of(t, know) for t in known.values()), *outcomes], now)


def shares_tasks(join: Task, run: Run) -> bool:
    """Whether another join waits for the same task: the task's row names one of them only."""
    steps = (run.step(ref, join) for ref in join.step.joins)
    return any(step is not None and len(step.joined_by) > 1 for step in steps)


def is_joined(task: Task, join: Task) -> bool:
    """Whether the join waits for this task."""
    if task.key.turn != join.key.turn:
        return False
    return task.joined_by == join.key.ref or join.key.ref in task.step.joined_by


def fork_of(run: Run, join: Step, key: Key) -> Task | None:
    """The dynamic fork before this join in this turn, or None after a written fork."""
    forks = (
        t for t in run.tasks.values() if t.key.turn == key.turn and t.step.follower == join.ref and "forked" in t.memo
    )
    return next(forks, None)


def verdict(task: Task, outcomes: list[Outcome], now: int) -> Iterator[Effect]:
    """What the join comes to, once everything that it joins has ended."""
    outcomes = sorted(outcomes, key=lambda outcome: outcome.seq)
    output = {str(outcome.key): outcome.output for outcome in outcomes if outcome.output}
    bad = [outcome for outcome in outcomes if outcome.status not in ("COMPLETED", COMPLETED_WITH_ERRORS, "SKIPPED")]
    flawed = [outcome for outcome in outcomes if outcome.status == COMPLETED_WITH_ERRORS]
    if bad and all(outcome.status == CANCELED for outcome in bad):
        yield from fail(task, now, _reasons(bad), output, event="cancel")
    elif bad:
        yield from fail(task, now, _reasons(bad), output)
    elif flawed:
        reason = " ".join(f"{outcome.name}/{outcome.attempt_id}" for outcome in flawed)
        yield MoveAttempt(task.key, "complete", now, {"output": output, "reason": reason})
        yield ResolveTask(task.key, "complete_with_errors")
    else:
        yield from complete(task, now, output)


def _reasons(outcomes: list[Outcome]) -> str:
    return " ".join(outcome.reason for outcome in outcomes if outcome.reason) or "A joined task did not succeed."
