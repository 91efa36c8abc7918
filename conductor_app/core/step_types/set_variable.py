"""SET_VARIABLE: each input becomes a variable of the run."""

import json
from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect, SetVariables
from ..errors import StepRefused
from .base import StepType, completed_task, resolve_inputs

MOST_BYTES = 256 * 1024
"""What all variables of a run may take together (execution §1.6)."""


class SetVariable(StepType):
    """Overwrites variables by name at the top level (execution §8.20)."""

    type = "SET_VARIABLE"
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        variables = {**ctx.variables(), **inputs}
        size = len(json.dumps(variables, default=str))
        if size > MOST_BYTES:
            raise StepRefused(f"The workflow's variables would take {size} bytes; {MOST_BYTES} are allowed.")
        yield SetVariables(variables)
        yield completed_task(step, key, ctx.run, now, input=inputs, output={})
