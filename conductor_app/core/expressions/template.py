"""The language of `${…}`: inputs and outputs written as JSON with expressions in their texts."""

from typing import Any

from .json_walk import expression_texts, replace_texts
from .parsing import parse_template
from .references import Scope


def resolve_template(value: Any, scope: Scope) -> Any:
    """Return the value with every expression replaced by its value.

    A text that is one expression becomes the value itself, shared with the scope and not copied. Exceptions of the
    scope propagate, so that it can request missing data.
    """
    return replace_texts(value, lambda text: parse_template(text).value(scope))


def needed_references(value: Any) -> frozenset[tuple[str, str]]:
    """Return the (root, key) pairs of the literal expressions in a value."""
    return frozenset().union(*(parse_template(text).needs for text in expression_texts(value)))
