"""YIELD: wait for a signal."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from .base import StepType, held_by_engine, inputs_of


class Yield(StepType):
    """Stay open until a signal or a task update completes it (Orkes' step type)."""

    type = "YIELD"
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, ctx, key, ctx.run, now)
        yield held_by_engine(step, key, ctx.run, now, input=inputs, output={})
