"""DYNAMIC steps, after an input has named their task.

Inputs that an operator set for one task. They replace inputs of its step in every attempt.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from .definition import DEFAULT_TYPE, Step, runs_by_name, structure_of
from .document.reading import BUILT_IN_LEASE_SECONDS
from .expressions.json_text import replace_texts
from .primitives import fast_replace

INPUT_OVERRIDE_KEY = "given"
"""Key in a task's step state for these inputs."""


def override_inputs(step: Step, given: Mapping[str, Any] | None) -> Step:
    """Return the step with its inputs replaced by `given`.

    Expressions in `given` are escaped, because they are data.
    """
    if not given:
        return step
    return fast_replace(step, inputs={**step.inputs, **replace_texts(dict(given), _escape_expressions)})


def _escape_expressions(text: str) -> str:
    return text.replace("${", "$${")


def name_step(step: Step, name: str) -> Step:
    """Return a DYNAMIC step as one of the type that a name names; another name is that of a task for workers."""
    type = name if runs_by_name(name) else DEFAULT_TYPE
    policy = step.policy
    if structure_of(type).is_built_in:
        lease = min(policy.lease_seconds or BUILT_IN_LEASE_SECONDS, BUILT_IN_LEASE_SECONDS)
        policy = dataclasses.replace(policy, lease_seconds=lease, requeues_on_lost_lease=True)
    return fast_replace(step, type=type, name=name, policy=policy, is_named_by_input=True)


def restore_step(step: Step, state: Mapping[str, Any]) -> Step:
    """Return the step of a stored task: with the name of its task, and with the inputs that an operator set."""
    named = name_step(step, str(state["name"])) if "name" in state and not step.is_named_by_input else step
    return override_inputs(named, state.get(INPUT_OVERRIDE_KEY))
