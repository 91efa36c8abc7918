"""LAMBDA: the value that a script returns; INLINE in its older form."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..states import COMPLETED, FAILED
from .base import StepType, completed_task, resolve_inputs
from .evaluation import value_of


class Lambda(StepType):
    """Over at once, with what the script returns as `result`; one that fails leaves none (execution §8.18)."""

    type = "LAMBDA"
    output_members = {"result": None, "error": None}
    script_field = "inputParameters.scriptExpression"
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        script = inputs.get("scriptExpression") or step.document.get("scriptExpression")
        answer = value_of(wrap_as_function(script), "javascript", inputs, ctx)
        output, status = ({}, FAILED) if answer.error else ({"result": answer.value}, COMPLETED)
        yield completed_task(step, key, ctx.run, now, status, input=inputs, output=output, reason=answer.error)


def wrap_as_function(script: object) -> object:
    """The script as the body of a function that is called: it says `return`. What is no text stays what it is."""
    is_written = isinstance(script, str) and script.strip()
    return f"(function () {{ {script}\n}})()" if is_written else script
