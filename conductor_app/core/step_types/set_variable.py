"""SET_VARIABLE: each input becomes a variable of the run."""

import json
from collections.abc import Iterator

from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect, SetVariables
from ..errors import StepRefused
from .base import Kind, finished_at_once, inputs_of

MOST_BYTES = 256 * 1024
"""What all variables of a run may take together (execution §1.6)."""


class SetVariable(Kind):
    """Overwrites variables by name at the top level (execution §8.20)."""

    type = "SET_VARIABLE"

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        variables = {**know.variables(), **inputs}
        size = len(json.dumps(variables, default=str))
        if size > MOST_BYTES:
            raise StepRefused(f"The workflow's variables would take {size} bytes; {MOST_BYTES} are allowed.")
        yield SetVariables(variables)
        yield finished_at_once(step, key, know.run, now, input=inputs, output={})
