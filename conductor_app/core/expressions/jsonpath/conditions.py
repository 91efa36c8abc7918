"""The conditions inside `[?(…)]` as a tree that evaluates a value."""

from dataclasses import dataclass
from typing import Any

from ..java_text import java_text
from .comparisons import OPERATORS, is_number, is_subset
from .path import Path
from .reading import ABSENT, Reading


@dataclass(frozen=True)
class Literal:
    """A value written into the path."""

    written: Any

    def value(self, item: Any, reading: Reading) -> Any:
        """Return the literal."""
        return self.written


@dataclass(frozen=True)
class Operand:
    """A path inside a path: from the tested value (`@`) or from the whole document (`$`)."""

    path: Path
    is_absolute: bool

    def value(self, item: Any, reading: Reading) -> Any:
        """Return the result of the path, or ABSENT."""
        return reading.absolute(self.path) if self.is_absolute else self.path.find_within(item, reading)


@dataclass(frozen=True)
class PathExists:
    """`[?(@.x)]`: the path has a value, which may be null.

    Of an indefinite path, only the definite beginning is checked.
    """

    operand: Operand

    def holds(self, item: Any, reading: Reading) -> bool:
        return self.operand.value(item, reading) is not ABSENT


@dataclass(frozen=True)
class PathComparison:
    """Two values and an operator between them."""

    left: Literal | Operand
    operator: str
    right: Literal | Operand

    def holds(self, item: Any, reading: Reading) -> bool:
        left, right = self.left.value(item, reading), self.right.value(item, reading)
        compare = OPERATORS[self.operator]
        reading.visit(_size(left) * _size(right) if compare is is_subset else _size(left) + _size(right))
        return compare(left, right)


@dataclass(frozen=True)
class PatternMatch:
    """`=~ /…/`: the complete text matches. Values other than texts, numbers and booleans count as an empty text."""

    operand: Literal | Operand
    pattern: Any

    def holds(self, item: Any, reading: Reading) -> bool:
        value = self.operand.value(item, reading)
        is_readable = isinstance(value, str | bool) or is_number(value)
        return self.pattern.matches(java_text(value) if is_readable else "", reading.budget)


@dataclass(frozen=True)
class AllConditions:
    """All of these hold."""

    parts: tuple[Any, ...]

    def holds(self, item: Any, reading: Reading) -> bool:
        return all(part.holds(item, reading) for part in self.parts)


@dataclass(frozen=True)
class AnyCondition:
    """One of these holds."""

    parts: tuple[Any, ...]

    def holds(self, item: Any, reading: Reading) -> bool:
        return any(part.holds(item, reading) for part in self.parts)


@dataclass(frozen=True)
class Negation:
    """The opposite."""

    part: Any

    def holds(self, item: Any, reading: Reading) -> bool:
        return not self.part.holds(item, reading)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1
