"""NOOP: nothing."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from .base import StepType, finished_at_once


class Noop(StepType):
    """Over at once, with neither input nor output (execution §8.21)."""

    type = "NOOP"

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        yield finished_at_once(step, key, ctx.run, now, input={}, output={})
