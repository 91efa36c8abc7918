"""Give what waits in a queue another place: a priority, a moment, a queue; put back what a worker holds."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..decision_context import DecisionContext
from ..effects import Effect, RequeueAttempt, TransitionAttempt
from ..errors import Conflict
from ..frozen import fast_replace
from ..reports import require_open_task, return_to_queue
from ..snapshot import Run
from ..states import LEASED, PENDING
from ..timers import next_timer


def requeue_attempt(attempt_id: str, facts: Mapping[str, Any]):
    """The command. `facts`: fields of the attempt; a moment that is not its own starts its wait anew."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id)
        if task.attempt.status != PENDING or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}: it does not wait in a queue.")
        fresh = dict(facts)
        if task.attempt.visible_at > now and fresh.get("visible_at", task.attempt.visible_at) <= now:
            fresh |= {"pending_since": now, "callback_ms": 0}
        fresh["due_at"] = next_timer(task.step.policy, fast_replace(task.attempt, **fresh), now)
        yield RequeueAttempt(task.key, fresh)

    return command


def release_lease(attempt_id: str):
    """The command that hands what a worker holds to others, as if the worker had asked for time: its number stays."""

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[TransitionAttempt]:
        task = require_open_task(run, attempt_id)
        if task.attempt.status != LEASED or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}: no worker holds it.")
        yield return_to_queue(task, 0, {}, now)

    return command
