"""SET_VARIABLE: sets each input as a variable of the run."""

import json
from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect, SetVariables
from ..errors import StepRefused
from .base import StepType, completed_task, resolve_inputs

MAX_BYTES = 256 * 1024
"""Maximum size of all variables of a run in bytes (execution §1.6)."""


class SetVariable(StepType):
    """Replaces variables by name at the top level (execution §8.20)."""

    type = "SET_VARIABLE"
    icon = "variable"
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        variables = {**ctx.variables(), **inputs}
        size = len(json.dumps(variables, default=str))
        if size > MAX_BYTES:
            raise StepRefused(f"The variables of the workflow have {size} bytes. The limit is {MAX_BYTES} bytes.")
        yield SetVariables(variables)
        yield completed_task(step, key, ctx.run, now, input=inputs, output={})
