"""Make waiting tasks visible to workers at once."""

from collections.abc import Iterator
from typing import Any

from ..decision_context import DecisionContext
from ..effects import Effect, UpdateTask
from ..errors import NotAllowedInState
from ..frozen import fast_replace
from ..snapshot import Run
from ..states import PENDING
from ..timers import next_timer


def reset_callbacks(run: Run, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Yield the effects that end callback delays and retry delays of pending tasks (execution §7.2).

    Raises:
        NotAllowedInState: when the run has ended.
    """
    if not run.is_open:
        raise NotAllowedInState(
            f"Workflow {run.id} is {run.status}. Callbacks can only be reset while it is running or paused."
        )
    for task in run.open_tasks:
        attempt = task.attempt
        if attempt.status == PENDING and attempt.queue and attempt.callback_ms and attempt.visible_at > now:
            facts: dict[str, Any] = {"visible_at": now, "pending_since": now, "callback_ms": 0}
            due_at = next_timer(task.step.policy, fast_replace(attempt, **facts), now)
            yield UpdateTask(task.key, attempt_facts={**facts, "due_at": due_at})
