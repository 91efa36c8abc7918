"""Permission to use the databases, integrations, models and prompts that the inputs of a task name."""

import re
from collections.abc import Mapping
from typing import Any

from ..decision_context import DecisionContext
from ..definition import Step
from ..errors import StepRefused
from ..step_structure import STEP_STRUCTURES, StepStructure

QUEUE_SUFFIX = re.compile(r"[@-].*", re.DOTALL)
"""The name space and the isolation group in the name of a queue."""


def require_named_objects(step: Step, task_type: str, inputs: Mapping[str, Any], ctx: DecisionContext) -> None:
    """Check that the run may use what the resolved inputs of a queued task name.

    `task_type`: decides which worker claims the task, whatever the type of its step is.

    Raises:
        StepRefused: when it may not use an object, or a secret stands for its name.
    """
    structure = _structure_of_queue(task_type)
    if structure is None:
        return
    for name in structure.naming_inputs:
        if step.secrets and _has_secret(inputs.get(name)):
            raise StepRefused(f"The input {name} must be a name; the value of a secret cannot be one.")
    is_written = step.is_authored and not step.is_named_by_input and step.type == structure.type
    written = set(structure.named_objects(step.inputs)) if is_written else set()
    for use in structure.named_objects(inputs):
        ctx.require_use(use.target_type, use.name, is_authored=use in written)


def _structure_of_queue(task_type: str) -> StepStructure | None:
    """Return the type whose built-in worker claims the tasks of a queue, or None."""
    found = STEP_STRUCTURES.get(QUEUE_SUFFIX.sub("", task_type))
    return found if found and found.is_built_in else None


def _has_secret(value: Any) -> bool:
    return isinstance(value, str) and "${" in value and "secrets" in value
