"""The language `value-param`: the expression is the name of an input."""

from collections.abc import Mapping
from typing import Any


def evaluate(expression: str, inputs: Mapping[str, Any]) -> Any:
    """Return the input of that name, or None."""
    return inputs.get(expression)
