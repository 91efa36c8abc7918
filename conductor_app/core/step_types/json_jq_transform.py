"""JSON_JQ_TRANSFORM: what a jq program makes of the step's input."""

from collections.abc import Iterator

from ..data_requests import ScriptResult
from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..states import COMPLETED, FAILED
from .base import StepType, completed_task, resolve_inputs


class JsonJqTransform(StepType):
    """Over at once, with the program's first value as `result` and all of them as `resultList` (execution §8.19)."""

    type = "JSON_JQ_TRANSFORM"
    required_inputs = ("queryExpression",)
    output_members = {"result": None, "resultList": None, "error": None}
    shows_isolation_group = True
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        program = inputs.get("queryExpression")
        if isinstance(program, str) and program.strip():
            answer = ctx.script("jq", program, inputs)
        else:
            answer = ScriptResult(error="The jq program is missing: write one in the input 'queryExpression'.")
        output, status = jq_output(answer), FAILED if answer.error else COMPLETED
        yield completed_task(step, key, ctx.run, now, status, input=inputs, output=output, reason=answer.error)


def jq_output(answer: ScriptResult) -> dict[str, object]:
    """The task's output: the values, or why there are none."""
    if answer.error:
        return {"error": answer.error}
    return {"result": answer.value[0] if answer.value else None, "resultList": answer.value}
