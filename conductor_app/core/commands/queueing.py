"""Change the priority, the delay or the queue of a pending attempt; take a leased one from its worker."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..decision_context import Command, DecisionContext
from ..effects import Effect, RequeueAttempt, TransitionAttempt
from ..errors import Conflict
from ..frozen import fast_replace
from ..reports import require_open_task, return_to_queue
from ..snapshot import Run
from ..states import LEASED, PENDING
from ..timers import next_timer


def requeue_attempt(attempt_id: str, facts: Mapping[str, Any]) -> Command:
    """Return the command that changes these fields of a pending attempt.

    If it ends a delay, the poll timeout starts again.

    Raises:
        Conflict: when the command is applied and the attempt is not in a queue.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task = require_open_task(run, attempt_id)
        if task.attempt.status != PENDING or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}. It is not waiting in a queue.")
        fresh = dict(facts)
        if task.attempt.visible_at > now and fresh.get("visible_at", task.attempt.visible_at) <= now:
            fresh |= {"pending_since": now, "callback_ms": 0}
        fresh["due_at"] = next_timer(task.step.policy, fast_replace(task.attempt, **fresh), now)
        yield RequeueAttempt(task.key, fresh)

    return command


def release_lease(attempt_id: str) -> Command:
    """Return the command that releases a leased attempt to its queue, as if its worker had done so; its number stays.

    Raises:
        Conflict: when the command is applied and no worker holds the attempt.
    """

    def command(run: Run, ctx: DecisionContext, now: int) -> Iterator[TransitionAttempt]:
        task = require_open_task(run, attempt_id)
        if task.attempt.status != LEASED or not task.attempt.queue:
            raise Conflict(f"Task {attempt_id} is {task.attempt.status}. No worker holds it.")
        yield return_to_queue(task, 0, {}, now)

    return command
