"""SWITCH: control goes to one of several cases."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..expressions import java_text
from ..snapshot import Task
from ..states import FAILED
from .base import StepType, completed_task, resolve_inputs
from .cases import case_inputs, case_successor, case_text
from .evaluation import value_of


class Switch(StepType):
    """Over as soon as the case is known; leads to the head of that case (execution §8.3)."""

    type = "SWITCH"
    is_retried = False

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        language = step.document.get("evaluatorType") or "value-param"
        answer = value_of(step.document.get("expression"), language, inputs, ctx)
        if answer.error:
            yield completed_task(step, key, ctx.run, now, FAILED, input=inputs, output={}, reason=answer.error)
            return
        # Python tells 1 from 1.0, so the case is named as Conductor prints it.
        case = java_text(answer.value) if language == "python" else case_text(answer.value)
        head = step.cases.get(case, step.default_case)
        yield completed_task(
            step,
            key,
            ctx.run,
            now,
            input=inputs | case_inputs(case, head),
            step_state={"head": head},
            output={"evaluationResult": [case], "selectedCase": case},
        )

    def successors(self, task: Task) -> Iterator[Key]:
        return case_successor(task)
