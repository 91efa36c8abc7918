"""INLINE: evaluates an expression."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..states import COMPLETED, FAILED, FAILED_FOR_GOOD
from .base import StepType, completed_task, resolve_inputs
from .evaluation import value_of


class Inline(StepType):
    """Completes at once, with the value as `result` (execution §8.17)."""

    type = "INLINE"
    icon = "code"
    output_members = {"result": None, "error": None}
    script_field = "inputParameters.expression"
    allows_python = True
    shows_isolation_group = True
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        result = value_of(inputs.get("expression"), inputs.get("evaluatorType") or "javascript", inputs, ctx)
        status = COMPLETED if not result.error else FAILED if result.timed_out else FAILED_FOR_GOOD
        output = {"error": result.error} if result.error else {"result": result.value}
        yield completed_task(step, key, ctx.run, now, status, input=inputs, output=output, reason=result.error)
