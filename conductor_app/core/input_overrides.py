"""Inputs that an operator set for one task. They replace inputs of its step in every attempt."""

from collections.abc import Mapping
from typing import Any

from .definition import Step
from .expressions.json_walk import replace_texts
from .frozen import fast_replace

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
