"""LAMBDA: evaluates a script. Deprecated form of INLINE."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..states import COMPLETED, FAILED
from .base import StepType, completed_task, resolve_inputs
from .evaluation import value_of


class Lambda(StepType):
    """Completes at once, with the return value as `result`; a script that fails has no output (execution §8.18)."""

    type = "LAMBDA"
    icon = "code"
    output_members = {"result": None, "error": None}
    script_field = "inputParameters.scriptExpression"
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        script = inputs.get("scriptExpression") or step.document.get("scriptExpression")
        result = value_of(wrap_as_function(script), "javascript", inputs, ctx, "scriptExpression")
        output, status = ({}, FAILED) if result.error else ({"result": result.value}, COMPLETED)
        yield completed_task(step, key, ctx.run, now, status, input=inputs, output=output, reason=result.error)


def wrap_as_function(script: object) -> object:
    """Return the script as the body of a function that is called, because it uses `return`."""
    is_script = isinstance(script, str) and script.strip()
    return f"(function () {{ {script}\n}})()" if is_script else script
