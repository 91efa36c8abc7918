"""SET_VARIABLE: each input becomes a variable of the run."""

from collections.abc import Iterator

from ..definition import Key, Step
from ..effects import Effect, SetVariables
from ..knowledge import Knowledge
from .kind import Kind, finished_at_once, inputs_of


class SetVariable(Kind):
    """Overwrites variables by name at the top level (execution §8.20)."""

    type = "SET_VARIABLE"

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        yield SetVariables({**know.variables(), **inputs})
        yield finished_at_once(step, key, know.run, now, input=inputs, output={})
