"""NOOP: nothing."""

from collections.abc import Iterator

from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect
from .base import Kind, finished_at_once


class Noop(Kind):
    """Over at once, with neither input nor output (execution §8.21)."""

    type = "NOOP"

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        yield finished_at_once(step, key, know.run, now, input={}, output={})
