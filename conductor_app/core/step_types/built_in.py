"""Common base of step types whose tasks are executed by built-in workers."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from .base import StepType, resolve_inputs
from .queued import QueuedWork, async_marker, queued_task

RESPONSE = dict.fromkeys(("headers", "statusCode", "body", "reasonPhrase"))
"""The members of `response` in the output of HTTP tasks."""


class BuiltIn(StepType):
    """A task that waits in a queue for a built-in worker. It has no domain (execution §5.3)."""

    is_queued = True
    is_completed_externally = True
    is_built_in = True
    is_isolated = True
    is_forked_by_type = True
    result_comes_from_outside = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        if ctx.input_override(key) is None:
            inputs = self.extend_inputs(step, key, inputs, ctx)
        # The worker receives nothing of the step but its inputs.
        yield queued_task(step, key, ctx, now, QueuedWork(self.type, inputs | async_marker(step)))
