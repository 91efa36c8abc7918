"""JSON_JQ_TRANSFORM: transforms the step's input with a jq program."""

from collections.abc import Iterator

from ..data_requests import ScriptResult
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..states import COMPLETED, FAILED
from .base import StepType, completed_task, resolve_inputs


class JsonJqTransform(StepType):
    """Completes at once, with the first value as `result` and all values as `resultList` (execution §8.19)."""

    type = "JSON_JQ_TRANSFORM"
    icon = "code"
    required_inputs = ("queryExpression",)
    output_members = {"result": None, "resultList": None, "error": None}
    shows_isolation_group = True
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        program = inputs.get("queryExpression")
        if isinstance(program, str) and program.strip():
            result = ctx.script("jq", program, inputs)
        else:
            result = ScriptResult(error="The jq program is missing. Set the input 'queryExpression'.")
        output, status = jq_output(result), FAILED if result.error else COMPLETED
        yield completed_task(step, key, ctx.run, now, status, input=inputs, output=output, reason=result.error)


def jq_output(result: ScriptResult) -> dict[str, object]:
    """Return the task's output: the values, or the error."""
    if result.error:
        return {"error": result.error}
    return {"result": result.value[0] if result.value else None, "resultList": result.value}
