"""SIMPLE, and every type that is not registered: a task for workers."""

from collections.abc import Iterator

from ..decision_context import DecisionContext, conductor_task_type
from ..definition import Key, Step
from ..effects import Effect
from ..errors import StepRefused
from ..step_structure import DEFAULT_TYPE, is_reserved_name
from .base import StepType, resolve_inputs
from .queued import QueuedWork, queued_task


class Simple(StepType):
    """Waits in the queue of its task type until a worker claims it."""

    type = DEFAULT_TYPE
    names_task = True
    result_comes_from_outside = True
    is_queued = True
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        if is_reserved_name(step.name):
            raise StepRefused(
                f"The task {step.name} cannot be executed by name: its branches are part of a step. "
                f"Write a step of type {step.name}, or name another task."
            )
        task_type = conductor_task_type(step.type, step.name)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        yield queued_task(step, key, ctx, now, QueuedWork(task_type, inputs, ctx.domain(task_type)))

    def conductor_type(self, name: str) -> str:
        return name
