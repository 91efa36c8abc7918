"""Parser of paths and of the filters in them, as Jayway 2.4 reads them.

In a filter, `||` binds weakest, then `&&`, then `!` and parentheses.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .jsonpath_conditions import (
    OPERATORS,
    AllConditions,
    AnyCondition,
    FunctionCall,
    Literal,
    Negation,
    Operand,
    PathComparison,
    PathExists,
    PatternMatch,
    read_literal,
)
from .jsonpath_segments import BadPath, Cursor, Descent, Filter, Index, Path, Property, Slice, Wildcard
from .patterns import BacktrackingPattern, BadPattern, LinearPattern, compile_pattern

MAX_PATH_LENGTH = 10_000

_OUTER_NAME = re.compile(r"[^ .\[(]+")
# Inside a filter, a name also ends at the next part of the condition.
_INNER_NAME = re.compile(r"[^\s.\[(<>=!~),&|]+")
_SLICE = re.compile(r"\[\s*(-?\d{1,9})?\s*:\s*(-?\d{1,9})?\s*(?::[^\]]*)?\]", re.ASCII)
_INDEX = re.compile(r"\[\s*(-?\d{1,9}(?:\s*,\s*-?\d{1,9})*)\s*\]", re.ASCII)
_WILDCARD = re.compile(r"\*|\[\s*\*\s*\]")
_FILTER = re.compile(r"\[\s*\?\s*\(")
_FILTER_END = re.compile(r"\s*\)\s*\]")
_BRACKET_NAME = re.compile(r"\[\s*(?=['\"])")


@lru_cache(maxsize=4_096)
def compile_path(text: str) -> Path:
    """Return the compiled path.

    Raises:
        BadPath: when the text is invalid, with the reason.
    """
    if len(text) > MAX_PATH_LENGTH:
        raise BadPath(f"a path may have {MAX_PATH_LENGTH:,} characters at most")
    written = text.strip()
    if not written:
        raise BadPath("the path is empty")
    if written.endswith("."):
        raise BadPath(f"a path must not end with a dot: {written!r}")
    cursor = Cursor(written if written[0] in "$@" else "$." + written)
    path = _read_path(cursor, _OUTER_NAME)
    return path if cursor.is_at_end else cursor.refuse("unexpected character")


def _read_inner_path(cursor: Cursor) -> Path:
    return _read_path(cursor, _INNER_NAME)


def _read_path(cursor: Cursor, name_pattern: re.Pattern[str]) -> Path:
    """Read `$` or `@` and all the segments behind it."""
    begin = cursor.at
    cursor.at += 1
    segments, ends = [], []
    while cursor.is_at(".", "["):
        is_descent = cursor.accept("..")
        if not is_descent:
            cursor.accept(".")
        segment = _segment(cursor, name_pattern)
        segments.append(Descent(segment) if is_descent else segment)
        ends.append(cursor.at - begin)
    return Path(cursor.text[begin : cursor.at], _mark_last_segment(segments), tuple(ends), tuple(cursor.absolutes))


def _mark_last_segment(segments: list[Any]) -> tuple[Any, ...]:
    """Return the segments, with the last one marked where that matters."""
    *others, last = segments or [None]
    return (*map(_unmark_last, others), last) if segments else ()


def _unmark_last(segment: Any) -> Any:
    if isinstance(segment, Descent):
        return Descent(_unmark_last(segment.segment), is_last=False)
    return Property(segment.names, is_last=False) if isinstance(segment, Property) else segment


def _segment(cursor: Cursor, name_pattern: re.Pattern[str]) -> Any:
    if cursor.match(_WILDCARD):
        return Wildcard()
    if cursor.is_at("["):
        return _bracket(cursor)
    found = cursor.match(name_pattern)
    if not found:
        cursor.refuse("expected a name")
    if cursor.accept("("):
        return FunctionCall(found[0], _arguments(cursor))
    if cursor.is_at(" ") and name_pattern is _OUTER_NAME:
        cursor.refuse("a name with a blank is written ['my name']; blank")
    return Property((found[0],))


def _bracket(cursor: Cursor) -> Any:
    if cursor.match(_BRACKET_NAME):
        return Property(_names(cursor))
    if found := cursor.match(_INDEX):
        return Index(tuple(int(position) for position in found[1].split(",")))
    if found := cursor.match(_SLICE):
        start, stop = (int(bound) if bound else None for bound in found.groups())
        if start is None and stop is None:
            cursor.refuse("a slice needs a beginning or an end; not so")
        return Slice(start, stop)
    if cursor.match(_FILTER):
        with cursor.nested():
            condition = ConditionParser(cursor, _read_inner_path).read_alternatives()
            if not cursor.match(_FILTER_END):
                cursor.refuse("expected ')]'")
        return Filter(condition)
    return cursor.refuse("expected ['name'], [0], [0:2], [*] or [?(…)]")


def _names(cursor: Cursor) -> tuple[str, ...]:
    names = [cursor.string()]
    while cursor.skip_blanks().accept(","):
        if not cursor.skip_blanks().is_at("'", '"'):
            cursor.refuse("expected a quoted name")
        names.append(cursor.string())
    cursor.expect("]")
    return tuple(names)


def _arguments(cursor: Cursor) -> tuple[Any, ...]:
    if cursor.skip_blanks().accept(")"):
        return ()
    # Jayway ignores a single argument of one character: `append(6)` appends nothing.
    if cursor.text[cursor.at + 1 : cursor.at + 2] == ")" and not cursor.is_at("$", "@"):
        cursor.at += 2
        return ()
    with cursor.nested():
        return _argument_list(cursor)


def _argument_list(cursor: Cursor) -> tuple[Any, ...]:
    arguments = []
    while True:
        arguments.append(ConditionParser(cursor, _read_inner_path).argument())
        if cursor.skip_blanks().accept(")"):
            return tuple(arguments)
        cursor.expect(",")


_OPERATOR = re.compile(r"[<>=!~]+|[A-Za-z]+(?=\s)")
_PATTERN = re.compile(r"/((?:[^/\\]|\\.)*)/([a-zA-Z]*)", re.DOTALL)

Condition = Any
"""One of the conditions of `jsonpath_conditions.py`."""


class ConditionParser:
    """Parser of conditions. `read_path` reads the paths inside, which in turn may contain conditions."""

    def __init__(self, cursor: Cursor, read_path: Callable[[Cursor], Path]) -> None:
        self._cursor = cursor
        self._read_path = read_path

    def read_alternatives(self) -> Condition:
        """Read conditions joined by `||`."""
        return self._read_joined("||", self._read_conjunction, AnyCondition)

    def operand(self) -> Literal | Operand:
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
            pattern = self._pattern()
            if self._operator() != "=~":
                self._cursor.refuse("expected '=~'")
            return PatternMatch(self.operand(), pattern)
        left = self.operand()
        operator = self._operator()
        if operator is None:
            if isinstance(left, Literal):
                self._cursor.refuse("expected an operator")
            return PathExists(Operand(left.path.head, left.is_absolute))
        if operator == "=~":
            return PatternMatch(left, self._pattern())
        return PathComparison(left, operator, self.operand())

    def _operator(self) -> str | None:
        found = self._cursor.skip_blanks().match(_OPERATOR)
        if not found:
            return None
        name = found[0].lower()
        return name if name in OPERATORS or name == "=~" else self._cursor.refuse(f"unknown operator '{found[0]}'")

    def _pattern(self) -> LinearPattern | BacktrackingPattern:
        found = self._cursor.skip_blanks().match(_PATTERN)
        if not found:
            self._cursor.refuse("expected a regular expression between slashes")
        try:
            return compile_pattern(found[1], found[2])
        except BadPattern as problem:
            return self._cursor.refuse(str(problem))
