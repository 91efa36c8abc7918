"""From the text of a filter to its conditions: `||` binds weakest, then `&&`, then `!` and parentheses."""

import re
from collections.abc import Callable
from typing import Any

from ..patterns import BacktrackingPattern, BadPattern, LinearPattern, compile_pattern
from .comparisons import OPERATORS
from .conditions import (
    AllConditions,
    AnyCondition,
    Literal,
    Negation,
    Operand,
    PathComparison,
    PathExists,
    PatternMatch,
)
from .cursor import Cursor
from .literals import read_literal
from .path import Path

_OPERATOR = re.compile(r"[<>=!~]+|[A-Za-z]+(?=\s)")
_PATTERN = re.compile(r"/((?:[^/\\]|\\.)*)/([a-zA-Z]*)", re.DOTALL)


Condition = Any
"""One of the conditions of `conditions.py`."""


class ConditionParser:
    """Parser of conditions. `read_path` reads the paths inside, which in turn may contain conditions."""

    def __init__(self, cursor: Cursor, read_path: Callable[[Cursor], Path]) -> None:
        self._cursor = cursor
        self._read_path = read_path

    def read_alternatives(self) -> Condition:
        """Read conditions joined by `||`."""
        return self._read_joined("||", self._read_conjunction, AnyCondition)

    def operand(self) -> Literal | Operand:
        """Read a path or a literal."""
        return self._path("$") if self._cursor.skip_blanks().is_at("@", "$") else Literal(read_literal(self._cursor))

    def argument(self) -> Literal | Operand:
        """Read an argument of a function, in which Jayway reads every path from the whole document."""
        return (
            self._path("$", "@") if self._cursor.skip_blanks().is_at("@", "$") else Literal(read_literal(self._cursor))
        )

    def _path(self, *absolute_marks: str) -> Operand:
        is_absolute = self._cursor.is_at(*absolute_marks)
        path = self._read_path(self._cursor)
        if is_absolute:
            self._cursor.absolutes.append(path)
        return Operand(path, is_absolute)

    def _read_conjunction(self) -> Condition:
        return self._read_joined("&&", self._read_single, AllConditions)

    def _read_joined(
        self, mark: str, read_part: Callable[[], Condition], join: Callable[[tuple[Condition, ...]], Condition]
    ) -> Condition:
        parts = [read_part()]
        while self._cursor.skip_blanks().accept(mark):
            parts.append(read_part())
        return parts[0] if len(parts) == 1 else join(tuple(parts))

    def _read_single(self) -> Condition:
        cursor = self._cursor.skip_blanks()
        with cursor.nested():
            if cursor.accept("!"):
                return self._read_negation()
            if cursor.accept("("):
                inner = self.read_alternatives()
                cursor.expect(")")
                return inner
            return self._read_comparison()

    def _read_negation(self) -> Condition:
        # Jayway's `!` before a path only means that the path must not exist; before a comparison it has no effect.
        if not self._cursor.skip_blanks().is_at("@", "$"):
            return Negation(self._read_single())
        condition = self._read_comparison()
        return Negation(condition) if isinstance(condition, PathExists) else condition

    def _read_comparison(self) -> Condition:
        if self._cursor.is_at("/"):
            return self._read_pattern_first()
        left = self.operand()
        operator = self._operator()
        if operator is None:
            return self._read_existence(left)
        if operator == "=~":
            return PatternMatch(left, self._pattern())
        return PathComparison(left, operator, self.operand())

    def _read_existence(self, operand: Literal | Operand) -> Condition:
        if isinstance(operand, Literal):
            self._cursor.refuse("expected an operator")
        return PathExists(Operand(operand.path.head, operand.is_absolute))

    def _operator(self) -> str | None:
        found = self._cursor.skip_blanks().match(_OPERATOR)
        if not found:
            return None
        name = found[0].lower()
        return name if name in OPERATORS or name == "=~" else self._cursor.refuse(f"unknown operator '{found[0]}'")

    def _read_pattern_first(self) -> Condition:
        pattern = self._pattern()
        if self._operator() != "=~":
            self._cursor.refuse("expected '=~'")
        return PatternMatch(self.operand(), pattern)

    def _pattern(self) -> LinearPattern | BacktrackingPattern:
        found = self._cursor.skip_blanks().match(_PATTERN)
        if not found:
            self._cursor.refuse("expected a regular expression between slashes")
        try:
            return compile_pattern(found[1], found[2])
        except BadPattern as problem:
            return self._cursor.refuse(str(problem))
