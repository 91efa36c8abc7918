"""TERMINATE: ends the run with the given status."""

from collections.abc import Iterator
from typing import cast

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..expressions import field_text, quote_value
from ..snapshot import Task
from ..states import FAILED
from ..step_state import TaskState
from ..step_structure import Document, Flow
from .base import RunEnding, StepType, completed_task, resolve_inputs

ENDS = {"COMPLETED": "complete", "FAILED": "fail", "TERMINATED": "terminate"}
"""Event of the run for each value of `terminationStatus`."""


class TerminateState(TaskState, total=False):
    """State of a TERMINATE. `ends`: the event that ends the run. `reason`: the reason in the input, or ""."""

    ends: str
    reason: str


class Terminate(StepType):
    """Ends the run and cancels what is still open (execution §8.12)."""

    type = "TERMINATE"
    flow = Flow.END
    is_retried = False

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        status = inputs.get("terminationStatus")
        event = ENDS.get(field_text(status))
        if event is None:
            reason = f"terminationStatus must be one of {', '.join(ENDS)}, not {quote_value(status)}."
            yield completed_task(step, key, ctx.run, now, FAILED, input=inputs, output={}, reason=reason)
            return
        workflow_output = inputs.get("workflowOutput")
        output = (
            workflow_output
            if isinstance(workflow_output, dict)
            else {}
            if workflow_output is None
            else {"output": workflow_output}
        )
        step_state: TerminateState = {"ends": event, "reason": field_text(inputs.get("terminationReason"))}
        yield completed_task(step, key, ctx.run, now, input=inputs, output=output, step_state=step_state)

    def run_ending(self, task: Task) -> RunEnding | None:
        state = cast(TerminateState, task.step_state)
        return RunEnding(state["ends"], state["reason"]) if task.succeeded and "ends" in state else None

    def successors(self, task: Task) -> Iterator[Key]:
        return iter(())

    def check(self, step: Document, template: Document) -> Iterator[str]:
        if step["optional"]:
            yield f"terminate task cannot be optional, taskName: {step.get('name', '')}"
        status = step["inputParameters"].get("terminationStatus")
        if not isinstance(status, str) or status not in ENDS:
            yield (
                "terminate task must have an terminationStatus parameter and must be set to COMPLETED, FAILED or "
                f"TERMINATED, taskName: {step.get('name', '')}"
                + (". Write terminationStatus into inputParameters" if "terminationStatus" in step else "")
            )
