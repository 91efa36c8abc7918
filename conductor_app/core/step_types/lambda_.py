"""LAMBDA: the value that a script returns; INLINE in its older form."""

from collections.abc import Iterator

from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect
from ..states import COMPLETED, FAILED
from .base import Kind, finished_at_once, inputs_of
from .evaluation import value_of


class Lambda(Kind):
    """Over at once, with what the script returns as `result`; one that fails leaves none (execution §8.18)."""

    type = "LAMBDA"

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        script = inputs.get("scriptExpression") or step.document.get("scriptExpression")
        answer = value_of(as_function(script), "javascript", inputs, know)
        output, status = ({}, FAILED) if answer.error else ({"result": answer.value}, COMPLETED)
        yield finished_at_once(step, key, know.run, now, status, input=inputs, output=output, reason=answer.error)


def as_function(script: object) -> object:
    """The script as the body of a function that is called: it says `return`. What is no text stays what it is."""
    is_written = isinstance(script, str) and script.strip()
    return f"(function () {{ {script}\n}})()" if is_written else script
