"""DYNAMIC: an input names the task to execute."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..errors import StepRefused
from ..expressions import quote_value
from ..named_steps import name_step
from .base import StepType, resolve_inputs

MAX_NAME_LENGTH = 255


class Dynamic(StepType):
    """A task with the name, and so of the type, that the input `dynamicTaskNameParam` names (execution §8.2).

    The engine enters the step that `as_executed` returns, so no task has this type.
    """

    type = "DYNAMIC"
    icon = "dynamic"
    required_fields = ("dynamicTaskNameParam",)
    names_task = True
    result_comes_from_outside = True
    is_completed_externally = True

    def as_executed(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Step:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        parameter = step.document.get("dynamicTaskNameParam") or ""
        name = inputs.get(parameter)
        if not isinstance(name, str) or not name.strip():
            raise StepRefused(
                f"The input '{parameter}' of {step.ref} must be the name of a task, not {quote_value(name)}."
            )
        if len(name) > MAX_NAME_LENGTH or "\0" in name:
            raise StepRefused(f"The name of the task must have at most {MAX_NAME_LENGTH} characters, none of them NUL.")
        return name_step(step, name)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        raise NotImplementedError

    def conductor_type(self, name: str) -> str:
        return name
