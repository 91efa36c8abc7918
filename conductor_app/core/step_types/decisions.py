"""DECISION: passes control to one of several cases. Deprecated form of SWITCH."""

from collections.abc import Iterator
from typing import Any

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..errors import StepRefused
from ..snapshot import Run, Task
from ..step_state import StepState
from ..step_structure import Body, Document, Flow
from .base import StepType, completed_task, resolve_inputs
from .cases import DEFAULT_CASE, ChoiceState, case_bodies, case_inputs, case_successor, case_text, upgraded_head
from .evaluation import value_of


class DecisionStep(StepType):
    """Completes as soon as the case is known; an empty or missing case means the default (execution §8.4)."""

    type = "DECISION"
    flow = Flow.CHOICE
    required_fields = ("decisionCases",)
    output_members = {"caseOutput": None}
    script_field = "caseExpression"
    is_retried = False

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        case = case_of(step, resolve_inputs(step, ctx, key, ctx.run, now), ctx)
        head = step.bodies.get(f"decisionCases[{case}]") or step.bodies.get(DEFAULT_CASE)
        yield completed_task(
            step,
            key,
            ctx.run,
            now,
            input=case_inputs(case, head),
            step_state=ChoiceState(head=head),
            output={"caseOutput": [case]},
        )

    def bodies(self, step: Document) -> Iterator[Body]:
        return case_bodies(step)

    def check(self, step: Document, template: Document) -> Iterator[str]:
        if step.get("caseValueParam") is None and step.get("caseExpression") is None:
            yield "caseValueParam"
        yield from super().check(step, template)

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        return upgraded_head(task, old)

    def enter_case(self, task: Task, head: str) -> StepState:
        return {**task.step_state, "head": head}

    def successors(self, task: Task) -> Iterator[Key]:
        return case_successor(task)


def case_of(step: Step, inputs: dict[str, Any], ctx: DecisionContext) -> str:
    """Return the case that the script names, or the input that `caseValueParam` names.

    Raises:
        StepRefused: when the script fails.
    """
    expression = step.document.get("caseExpression")
    if not expression:
        return case_text(inputs.get(str(step.document.get("caseValueParam"))))
    result = value_of(expression, "javascript", inputs, ctx, "caseExpression")
    if result.error:
        raise StepRefused(f"The caseExpression of {step.ref} failed: {result.error}")
    return case_text(result.value)
