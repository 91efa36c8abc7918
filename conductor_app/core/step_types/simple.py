"""Work for a worker: SIMPLE, every type that the language does not know, and the types of built-in workers."""

from collections.abc import Iterator

from ..decision_context import DecisionContext, conductor_task_type
from ..definition import Key, Step
from ..document.policy import BUILT_IN_TYPES
from ..effects import Effect
from .base import StepType, resolve_inputs
from .queued import async_marker, queued_task


class Simple(StepType):
    """Waits in the queue that is named after it until a worker claims it."""

    type = "SIMPLE"
    is_queued = True
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        task_type = conductor_task_type(step.type, step.name)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        if step.type not in BUILT_IN_TYPES:
            yield queued_task(step, key, ctx, now, task_type, ctx.domain(task_type), inputs)
            return
        # The types of built-in workers never get a domain (execution §5.3), and see nothing of the step but its inputs.
        yield queued_task(step, key, ctx, now, task_type, "", inputs | async_marker(step))
