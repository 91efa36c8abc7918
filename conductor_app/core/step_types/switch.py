"""SWITCH: control goes to one of several cases."""

from collections.abc import Iterator

from ..decision_context import Knowledge
from ..definition import Key, Step
from ..effects import Effect
from ..expressions import java_text
from ..snapshot import Task
from ..states import FAILED
from .base import Kind, finished_at_once, inputs_of
from .cases import into_case, shown_case, spelled
from .evaluation import value_of


class Switch(Kind):
    """Over as soon as the case is known; leads to the head of that case (execution §8.3)."""

    type = "SWITCH"
    is_retried = False

    def enter(self, step: Step, key: Key, know: Knowledge, now: int) -> Iterator[Effect]:
        inputs = inputs_of(step, know, key, know.run, now)
        language = step.document.get("evaluatorType") or "value-param"
        answer = value_of(step.document.get("expression"), language, inputs, know)
        if answer.error:
            yield finished_at_once(step, key, know.run, now, FAILED, input=inputs, output={}, reason=answer.error)
            return
        # Python tells 1 from 1.0, so the case is named as Conductor prints it.
        case = java_text(answer.value) if language == "python" else spelled(answer.value)
        head = step.cases.get(case, step.default_case)
        yield finished_at_once(
            step,
            key,
            know.run,
            now,
            input=inputs | shown_case(case, head),
            memo={"head": head},
            output={"evaluationResult": [case], "selectedCase": case},
        )

    def leads_to(self, task: Task) -> Iterator[Key]:
        return into_case(task)
