"""The language of `${…}`: inputs and outputs written as JSON with expressions in their texts."""

from typing import Any

from .json_walk import expression_texts, replace_texts
from .parsing import parse_template
from .references import Scope


def resolve_template(value: Any, scope: Scope) -> Any:
    """The value with every expression replaced by what it refers to.

    A text that is one expression takes the referred value as it is; it is shared with the scope, not copied. What the
    scope raises passes through: so it can ask for something that is not at hand.
    """
    return replace_texts(value, lambda text: parse_template(text).value(scope))


def needed_references(value: Any) -> frozenset[tuple[str, str]]:
    """The (root, key) pairs that the expressions of a value name, as far as they are written out."""
    return frozenset().union(*(parse_template(text).needs for text in expression_texts(value)))
