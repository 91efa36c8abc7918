"""Inputs that an operator gave for one task: they lie over what its step says, in every attempt at it."""

from collections.abc import Mapping
from typing import Any

from .definition import Step
from .expressions.json_walk import replace_texts
from .frozen import fast_replace

INPUT_OVERRIDE_KEY = "given"
"""Where a task's memo keeps them."""


def override_inputs(step: Step, given: Mapping[str, Any] | None) -> Step:
    """The step with these inputs over its own; they are data, so no expression in them is evaluated."""
    if not given:
        return step
    return fast_replace(step, inputs={**step.inputs, **replace_texts(dict(given), _escape_expressions)})


def _escape_expressions(text: str) -> str:
    return text.replace("${", "$${")
