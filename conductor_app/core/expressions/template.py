"""The language of `${…}`: inputs and outputs written as JSON with expressions in their texts."""

from typing import Any

from ..errors import PayloadOverLimit
from .json_walk import expression_texts, json_length, replace_texts
from .parsing import TextTooLong, parse_template
from .references import Scope

UNMEASURED_VALUES = 8
"""Objects and lists that are inserted without a look at their sizes. Each is a payload, or a part of one."""


def resolve_template(value: Any, scope: Scope, max_bytes: int = 0, what: str = "The value of an expression") -> Any:
    """Return the value with every expression replaced by its value.

    A text that is one expression becomes the value itself, shared with the scope and not copied. Exceptions of the
    scope propagate, so that it can request missing data.

    Raises:
        PayloadOverLimit: as soon as more than `max_bytes` are inserted, unless it is 0. `what`: the subject of the
            message.
    """
    if not max_bytes:
        return replace_texts(value, lambda text: parse_template(text).value(scope))
    return replace_texts(value, _SizeCounter(scope, max_bytes, what).value_of)


class _SizeCounter:
    """The values of the texts of a template, until their sizes exceed the limit."""

    __slots__ = ("containers", "max_bytes", "room", "scope", "sizes", "what")

    def __init__(self, scope: Scope, max_bytes: int, what: str) -> None:
        self.scope, self.max_bytes, self.what, self.room = scope, max_bytes, what, max_bytes
        self.containers: list[Any] = []
        self.sizes: dict[int, int] = {}

    def value_of(self, text: str) -> Any:
        try:
            value = parse_template(text).value(self.scope, self.room)
        except TextTooLong:
            raise PayloadOverLimit(self.what, self.max_bytes) from None
        if type(value) is str:
            self.room -= len(value)
        elif type(value) is dict or type(value) is list:
            self.containers.append(value)
            if len(self.containers) > UNMEASURED_VALUES:
                self._measure()
        if self.room < 0:
            raise PayloadOverLimit(self.what, self.max_bytes)
        return value

    def _measure(self) -> None:
        """Count the containers that are not counted yet. Each different one is read once."""
        unmeasured = self.containers[-1:] if self.sizes else self.containers
        for container in unmeasured:
            if id(container) not in self.sizes:
                self.sizes[id(container)] = json_length(container, self.max_bytes)
            self.room -= self.sizes[id(container)]


def needed_references(value: Any) -> frozenset[tuple[str, str]]:
    """Return the (root, key) pairs of the literal expressions in a value."""
    return frozenset().union(*(parse_template(text).needs for text in expression_texts(value)))
