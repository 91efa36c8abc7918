"""SWITCH: passes control to one of several cases."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..expressions import java_text
from ..snapshot import Run, Task
from ..states import FAILED
from ..step_state import StepState
from ..step_structure import Body, Document, Flow
from .base import StepType, completed_task, resolve_inputs
from .cases import DEFAULT_CASE, ChoiceState, case_bodies, case_inputs, case_successor, case_text, upgraded_head
from .evaluation import value_of


class Switch(StepType):
    """Completes as soon as the case is known; leads to the head of that case (execution §8.3)."""

    type = "SWITCH"
    flow = Flow.CHOICE
    required_fields = ("evaluatorType", "expression", "decisionCases")
    output_members = {"evaluationResult": None, "selectedCase": None}
    script_field = "expression"
    allows_python = True
    is_retried = False

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        language = step.document.get("evaluatorType") or "value-param"
        result = value_of(step.document.get("expression"), language, inputs, ctx)
        if result.error:
            yield completed_task(step, key, ctx.run, now, FAILED, input=inputs, output={}, reason=result.error)
            return
        # Python distinguishes 1 and 1.0, so the case name is the value as Conductor prints it.
        case = java_text(result.value) if language == "python" else case_text(result.value)
        head = step.bodies.get(f"decisionCases[{case}]", step.bodies.get(DEFAULT_CASE))
        yield completed_task(
            step,
            key,
            ctx.run,
            now,
            input=inputs | case_inputs(case, head),
            step_state=ChoiceState(head=head),
            output={"evaluationResult": [case], "selectedCase": case},
        )

    def bodies(self, step: Document) -> Iterator[Body]:
        return case_bodies(step)

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        return upgraded_head(task, old)

    def enter_case(self, task: Task, head: str) -> StepState:
        return {**task.step_state, "head": head}

    def successors(self, task: Task) -> Iterator[Key]:
        return case_successor(task)
