"""Check the input of a task against its schemas when its step is entered."""

from ..decision_context import DecisionContext
from ..effects import CreateTask, Effect
from ..schema_check import schema_violation
from ..snapshot import Run, Task
from ..states import COMPLETED, FAILED_FOR_GOOD
from ..step_types.base import completed_task


def validate_inputs(effects: list[Effect], run: Run, ctx: DecisionContext, now: int) -> list[Effect]:
    """Return the effects of entering a step, or a failed task if its input or output violates a schema."""
    for effect in effects:
        if isinstance(effect, CreateTask) and (reason := _input_violation(effect.task, ctx)):
            return [_refuse_task(effect.task, run, now, reason)]
    return effects


def _input_violation(task: Task, ctx: DecisionContext) -> str:
    policy, attempt = task.step.policy, task.attempt
    reason = schema_violation(policy.input_schema, attempt.input, "input", ctx)
    if reason or attempt.status != COMPLETED:
        return reason
    return schema_violation(policy.output_schema, attempt.output, "output", ctx)


def _refuse_task(task: Task, run: Run, now: int, reason: str) -> CreateTask:
    facts = {"input": task.attempt.input, "output": {}, "reason": reason, "step_state": task.step_state}
    return completed_task(task.step, task.key, run, now, FAILED_FOR_GOOD, **facts, iteration=task.iteration)
