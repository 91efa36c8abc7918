"""DYNAMIC: an input names the task to execute."""

import dataclasses
from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..document.policy import BUILT_IN_LEASE_SECONDS
from ..effects import Effect
from ..errors import StepRefused
from ..expressions import quote_value
from ..frozen import fast_replace
from ..step_structure import structure_of
from .base import StepType, resolve_inputs
from .queued import QueuedWork, async_marker, queued_task

MAX_NAME_LENGTH = 255


class Dynamic(StepType):
    """A task whose name is the value of the input that `dynamicTaskNameParam` names (execution §8.2)."""

    type = "DYNAMIC"
    icon = "dynamic"
    required_fields = ("dynamicTaskNameParam",)
    result_comes_from_outside = True
    is_queued = True
    is_completed_externally = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        parameter = step.document.get("dynamicTaskNameParam") or ""
        name = inputs.get(parameter)
        if not isinstance(name, str) or not name.strip():
            raise StepRefused(
                f"The input '{parameter}' of {step.ref} must be the name of a task, not {quote_value(name)}."
            )
        if len(name) > MAX_NAME_LENGTH or "\0" in name:
            raise StepRefused(f"The name of the task must have at most {MAX_NAME_LENGTH} characters, none of them NUL.")
        if not structure_of(name).is_built_in:
            yield queued_task(step, key, ctx, now, QueuedWork(name, inputs, ctx.domain(name)))
            return
        # Built-in workers execute it, as they would if the definition named the type.
        lease = min(step.policy.lease_seconds or BUILT_IN_LEASE_SECONDS, BUILT_IN_LEASE_SECONDS)
        built_in = fast_replace(step, policy=dataclasses.replace(step.policy, lease_seconds=lease))
        yield queued_task(built_in, key, ctx, now, QueuedWork(name, inputs | async_marker(step)))
