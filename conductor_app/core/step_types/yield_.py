"""YIELD: waits for a signal."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from .base import StepType, engine_held_task, resolve_inputs


class Yield(StepType):
    """Stays open until a signal or a task update completes it (Orkes' step type)."""

    type = "YIELD"
    icon = "wait"
    is_forked_by_type = True
    result_comes_from_outside = True
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield engine_held_task(step, key, ctx.run, now, input=inputs, output={})
