"""Inputs that an operator gave for one task: they lie over what its step says, in every attempt at it."""

from collections.abc import Mapping
from typing import Any

from .definition import Step
from .expressions.walking import with_texts_replaced
from .values import replace

GIVEN = "given"
"""Where a task's memo keeps them."""


def with_given(step: Step, given: Mapping[str, Any] | None) -> Step:
    """The step with these inputs over its own; they are data, so no expression in them is evaluated."""
    if not given:
        return step
    return replace(step, inputs={**step.inputs, **with_texts_replaced(dict(given), _literal)})


def _literal(text: str) -> str:
    return text.replace("${", "$${")
