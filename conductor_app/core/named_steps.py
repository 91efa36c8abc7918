"""DYNAMIC steps, after an input has named their task."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from .definition import Step
from .document.policy import BUILT_IN_LEASE_SECONDS
from .frozen import fast_replace
from .input_overrides import INPUT_OVERRIDE_KEY, override_inputs
from .step_structure import DEFAULT_TYPE, runs_by_name, structure_of


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
