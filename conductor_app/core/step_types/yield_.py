"""YIELD: wait for a signal."""

from collections.abc import Iterator

from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect
from .base import Kind, held_by_engine, inputs_of


class Yield(Kind):
    """Stay open until a signal or a task update completes it (Orkes' step type)."""

    type = "YIELD"
    hears_outside = True

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        yield held_by_engine(step, key, know.run, now, input=inputs, output={})
