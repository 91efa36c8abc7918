"""NOOP: does nothing."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from .base import StepType, completed_task


class Noop(StepType):
    """Completes at once, with neither input nor output (execution §8.21)."""

    type = "NOOP"
    icon = "noop"
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        yield completed_task(step, key, ctx.run, now, input={}, output={})
