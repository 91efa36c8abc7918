"""Give what waits in a queue another place: a priority, a moment, a queue; put back what a worker holds."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..decision_context import DecisionContext
from ..effects import Effect, RequeueAttempt, TransitionAttempt
from ..errors import Conflict
from ..reports import hand_back, open_task
from ..snapshot import Run
from ..states import LEASED, PENDING
from ..timers import next_clock
from ..values import replace


def requeue(attempt_id: str, facts: Mapping[str, Any]):
    """The command. `facts`: fields of the attempt; a moment that is not its own starts its wait anew."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = open_task(run, attempt_id)
        if task.attempt.status != PENDING or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}: it does not wait in a queue.")
        fresh = dict(facts)
        if task.attempt.visible_at > now and fresh.get("visible_at", task.attempt.visible_at) <= now:
            fresh |= {"pending_since": now, "callback_ms": 0}
        fresh["due_at"] = next_clock(task.step.policy, replace(task.attempt, **fresh), now)
        yield RequeueAttempt(task.key, fresh)

    return command


def take_back(attempt_id: str):
    """The command that hands what a worker holds to others, as if the worker had asked for time: its number stays."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[TransitionAttempt]:
        task = open_task(run, attempt_id)
        if task.attempt.status != LEASED or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}: no worker holds it.")
        yield hand_back(task, 0, {}, now)

    return command
