"""The language of `${…}`: inputs and outputs written as JSON with expressions in their texts."""

from typing import Any

from .parsing import parse
from .references import Scope
from .walking import texts, with_texts_replaced


def resolve(value: Any, scope: Scope) -> Any:
    """The value with every expression replaced by what it refers to.

    A text that is one expression takes the referred value as it is; it is shared with the scope, not copied. What the
    scope raises passes through: so it can ask for something that is not at hand.
    """
    return with_texts_replaced(value, lambda text: parse(text).value(scope))


def needed(value: Any) -> frozenset[tuple[str, str]]:
    """The (root, key) pairs that the expressions of a value name, as far as they are written out."""
    return frozenset().union(*(parse(text).needs for text in texts(value)))
