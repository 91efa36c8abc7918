"""JSON_JQ_TRANSFORM: what a jq program makes of the step's input."""

from collections.abc import Iterator

from ..data_requests import ScriptAnswer
from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect
from ..states import COMPLETED, FAILED
from .base import Kind, finished_at_once, inputs_of


class JsonJqTransform(Kind):
    """Over at once, with the program's first value as `result` and all of them as `resultList` (execution §8.19)."""

    type = "JSON_JQ_TRANSFORM"

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        program = inputs.get("queryExpression")
        if isinstance(program, str) and program.strip():
            answer = know.script("jq", program, inputs)
        else:
            answer = ScriptAnswer(error="The jq program is missing: write one in the input 'queryExpression'.")
        output, status = transformed(answer), FAILED if answer.error else COMPLETED
        yield finished_at_once(step, key, know.run, now, status, input=inputs, output=output, reason=answer.error)


def transformed(answer: ScriptAnswer) -> dict[str, object]:
    """The task's output: the values, or why there are none."""
    if answer.error:
        return {"error": answer.error}
    return {"result": answer.value[0] if answer.value else None, "resultList": answer.value}
