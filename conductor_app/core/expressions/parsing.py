"""From a text with `${…}` in it to its parts: read once, remembered for as long as it is in use."""

import re
from collections.abc import Iterator
from functools import lru_cache
from math import inf
from typing import Any

from .jsonpath.parser import MAX_PATH_LENGTH
from .references import Reference, Scope, UnreadableReference, parse_reference

MAX_CACHED_LENGTH = 4_096
MAX_NESTING_DEPTH = 16

ENVIRONMENT_OF_DATA = "env of data"
"""The key, below `workflow`, of the environment values that a path from data can read."""

_BRACE = re.compile(r"[{}]")
_OPENING = re.compile(r"(?<!\$)\$\{")


class TextTooLong(Exception):
    """A text that expressions compose exceeds the room for it."""


class Expression:
    """One `${…}` of a text; its path is written out, or put together from expressions inside it."""

    __slots__ = ("inner", "reference", "source")

    def __init__(self, source: str, reference: Reference | None, inner: Any = ()):
        self.source = source
        self.reference = reference
        self.inner = inner

    def reference_in(self, scope: Scope) -> Reference:
        """Return the target of the expression, after resolving the expressions inside it."""
        if self.reference:
            return self.reference
        try:
            return parse_reference(self.inner.text(scope, MAX_PATH_LENGTH))
        except TextTooLong:
            return UnreadableReference(self.source, f"a path may have {MAX_PATH_LENGTH:,} characters at most")

    def value(self, scope: Scope) -> Any:
        """Return the value with its type."""
        if self.reference:
            return self.reference.value(scope, self.source)
        return self.reference_in(scope).value(data_scope(scope), self.source)

    def text(self, scope: Scope) -> str:
        """Return the value as text."""
        reference = self.reference_in(scope)
        return reference.text_of(reference.value(scope if self.reference else data_scope(scope), self.source))

    def __iter__(self) -> Iterator["Expression"]:
        """Yield the expressions inside, then this one."""
        yield from self.inner
        yield self


def data_scope(scope: Scope) -> Scope:
    """Return the scope for a path that is put together from data: it cannot name what its author may read."""
    return lambda root, key: scope(root, ENVIRONMENT_OF_DATA if (root, key) == ("workflow", "env") else key)


class Template:
    """A text in parts: literal texts and expressions."""

    __slots__ = ("_whole", "needs", "parts")

    def __init__(self, parts: tuple[str | Expression, ...]):
        self.parts = parts
        self._whole = parts[0] if len(parts) == 1 and isinstance(parts[0], Expression) else None
        written = [expression.reference for expression in self if expression.reference]
        self.needs = frozenset().union(*(reference.needs for reference in written))

    def value(self, scope: Scope, room: float = inf) -> Any:
        """Return the value of the template. A template of a single expression has a value of any type.

        Raises:
            TextTooLong: when a text has more than `room` characters.
        """
        return self._whole.value(scope) if self._whole is not None else self.text(scope, room)

    def text(self, scope: Scope, room: float = inf) -> str:
        """Return the text with every expression inserted, and `$${` unescaped at the end, wherever it came from.

        Raises:
            TextTooLong: when it has more than `room` characters.
        """
        pieces = []
        for part in self.parts:
            piece = part if isinstance(part, str) else part.text(scope)
            room -= len(piece)
            if room < 0:
                raise TextTooLong
            pieces.append(piece)
        text = "".join(pieces)
        # A single expression is no finished text: Conductor hands its value on untouched.
        return text if self._whole is not None else text.replace("$${", "${")

    def __iter__(self) -> Iterator[Expression]:
        """Yield every expression of the template, inner ones first."""
        for part in self.parts:
            if isinstance(part, Expression):
                yield from part


def parse_template(text: str) -> Template:
    """Return the parsed template."""
    return _remembered(text) if len(text) <= MAX_CACHED_LENGTH else _parse(text)


def _parse(text: str, depth: int = 0) -> Template:
    closings = _closings(text)
    parts: list[str | Expression] = []
    done = 0
    for opening in _OPENING.finditer(text):
        begin, closing = opening.start(), closings.get(opening.end() - 1)
        if begin < done or closing is None:
            continue
        if begin > done:
            parts.append(text[done:begin])
        done = closing + 1
        parts.append(_expression(text[begin:done], depth))
    if done < len(text):
        parts.append(text[done:])
    return Template(tuple(parts))


_remembered = lru_cache(maxsize=4_096)(_parse)


def _expression(source: str, depth: int) -> Expression:
    path = source[2:-1]
    # A longer expression is never a path, so nothing inside it is read.
    if "${" not in path or depth == MAX_NESTING_DEPTH or len(path) > MAX_PATH_LENGTH:
        return Expression(source, parse_reference(path))
    inner = _parse(path, depth + 1)
    if any(isinstance(part, Expression) for part in inner.parts):
        return Expression(source, None, inner)
    return Expression(source, parse_reference(path.replace("$${", "${")))


def _closings(text: str) -> dict[int, int]:
    """Return the closing position of each opening brace, found in one pass. Unbalanced braces are missing."""
    closings: dict[int, int] = {}
    open_at: list[int] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            open_at.append(brace.start())
        elif open_at:
            closings[open_at.pop()] = brace.start()
    return closings
