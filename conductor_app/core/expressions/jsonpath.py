"""JSONPath as Jayway 2.4 reads it: literal values, conditions inside `[?(…)]`, functions, and the parser of paths.

In a filter, `||` binds weakest, then `&&`, then `!` and parentheses.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any, ClassVar

from .json_text import java_text
from .jsonpath_segments import (
    ABSENT,
    BadPath,
    Cursor,
    Descent,
    Filter,
    Index,
    NoAnswer,
    Path,
    Property,
    Reading,
    Slice,
    Wildcard,
)
from .patterns import BacktrackingPattern, BadPattern, LinearPattern, compile_pattern

_NUMERAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_MAX_NUMERAL_LENGTH = 400


def is_number(value: Any) -> bool:
    """Return True for a JSON number. Python would also accept True."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_in(text: str) -> int | float | None:
    if len(text) > _MAX_NUMERAL_LENGTH or not _NUMERAL.fullmatch(text):
        return None
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def equal(left: Any, right: Any) -> bool:
    """`==`: a number equals a text that represents it, null equals only null, and ABSENT equals nothing."""
    if is_number(left):
        return left == (number_in(right) if isinstance(right, str) else right) and not isinstance(right, bool)
    if isinstance(left, str):
        return left == (java_text(right) if is_number(right) else right)
    return left is not ABSENT and deep_equal(left, right)


def identical(left: Any, right: Any) -> bool:
    """`===`: equal, and of the same JSON type."""
    return _type(left) == _type(right) and equal(left, right)


def deep_equal(left: Any, right: Any) -> bool:
    """Return True if two JSON values are equal. The comparison is not recursive, for any depth."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            if one.keys() != other.keys():
                return False
            pairs.extend((one[key], other[key]) for key in one)
        elif isinstance(one, list):
            if len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif one != other:
            return False
    return True


def less(left: Any, right: Any) -> bool:
    """`<`: between two numbers or between two texts."""
    return _are_comparable(left, right) and left < right


def less_or_equal(left: Any, right: Any) -> bool:
    """`<=`: between two numbers or between two texts."""
    return _are_comparable(left, right) and left <= right


def is_in(left: Any, right: Any) -> bool:
    """`in`: the list contains an equal value."""
    return isinstance(right, list) and any(equal(left, item) for item in right)


def is_not_in(left: Any, right: Any) -> bool:
    """`nin`: the list contains no equal value."""
    return isinstance(right, list | dict) and not is_in(left, right)


def contains(left: Any, right: Any) -> bool:
    """`contains`: a text contains a text, or a list contains a value."""
    if isinstance(left, str) and isinstance(right, str):
        return right in left
    return isinstance(left, list) and any(equal(right, item) for item in left)


def has_size(left: Any, right: Any) -> bool:
    """`size`: the length of a text or a list."""
    return isinstance(left, str | list) and is_number(right) and len(left) == right


def is_empty(left: Any, right: Any) -> bool:
    """`empty true`, `empty false`: the text, list or map is empty or not."""
    return isinstance(left, str | list | dict) and isinstance(right, bool) and (not left) is right


def is_subset(left: Any, right: Any) -> bool:
    """`subsetof`: every element of the left list is in the right one."""
    return isinstance(left, list) and isinstance(right, list) and all(is_in(item, right) for item in left)


def never(left: Any, right: Any) -> bool:
    """`all`: Jayway 2.4 accepts only lists made in Java, which no path can contain."""
    return False


def _are_comparable(left: Any, right: Any) -> bool:
    return (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def _type(value: Any) -> type | str:
    if is_number(value):
        return "number"
    return "json" if isinstance(value, list | dict) else type(value)


OPERATORS = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "===": identical,
    "!==": lambda left, right: not identical(left, right),
    "<": less,
    "<=": less_or_equal,
    ">": lambda left, right: less(right, left),
    ">=": lambda left, right: less_or_equal(right, left),
    "in": is_in,
    "nin": is_not_in,
    "contains": contains,
    "size": has_size,
    "empty": is_empty,
    "subsetof": is_subset,
    "all": never,
}


@dataclass(frozen=True)
class Literal:
    """A value written into the path."""

    written: Any

    def value(self, item: Any, reading: Reading) -> Any:
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
    parts: tuple[Any, ...]

    def holds(self, item: Any, reading: Reading) -> bool:
        return all(part.holds(item, reading) for part in self.parts)


@dataclass(frozen=True)
class AnyCondition:
    parts: tuple[Any, ...]

    def holds(self, item: Any, reading: Reading) -> bool:
        return any(part.holds(item, reading) for part in self.parts)


@dataclass(frozen=True)
class Negation:
    part: Any

    def holds(self, item: Any, reading: Reading) -> bool:
        return not self.part.holds(item, reading)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1


@dataclass(frozen=True)
class FunctionCall:
    """`.name(arguments)`: a function of each value found."""

    name: str
    arguments: tuple[Any, ...] = ()
    is_definite: ClassVar[bool] = True

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return the result of the function for every value.

        Raises:
            NoAnswer: when it has no result for one, which ends the evaluation.
        """
        if self.name not in FUNCTIONS:
            raise NoAnswer
        function = FUNCTIONS[self.name]
        if len(hits) > 1:
            reading.visit(sum(len(hit) for hit in hits if isinstance(hit, list)))
        return [function(hit, [argument.value(hit, reading) for argument in self.arguments]) for hit in hits]


def length(value: Any, arguments: list[Any]) -> int | None:
    """Return the number of elements or members. Jayway 2.4 returns null for a text."""
    return len(value) if isinstance(value, list | dict) else None


def minimum(value: Any, arguments: list[Any]) -> float:
    """Return the smallest number of a list."""
    return min(_numbers(value))


def maximum(value: Any, arguments: list[Any]) -> float:
    """Return the greatest number of a list."""
    return max(_numbers(value))


def total(value: Any, arguments: list[Any]) -> float:
    """Return the sum of the numbers of a list."""
    return sum(_numbers(value), 0.0)


def average(value: Any, arguments: list[Any]) -> float:
    """Return the mean of the numbers of a list."""
    numbers = _numbers(value)
    return sum(numbers, 0.0) / len(numbers)


def deviation(value: Any, arguments: list[Any]) -> float:
    """Return the standard deviation of the numbers of a list."""
    numbers = _numbers(value)
    count, whole = len(numbers), sum(numbers)
    # Jayway's own formula, whose last digits clients may have written down.
    variance = sum(number * number for number in numbers) / count - whole * whole / count / count
    return sqrt(max(variance, 0.0))


def concat(value: Any, arguments: list[Any]) -> str:
    """Return the texts of a list and the arguments as one text."""
    own = [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
    return "".join(own + [text for argument in arguments for text in _texts(argument)])


def append(value: Any, arguments: list[Any]) -> Any:
    return value + [argument for argument in arguments if argument is not ABSENT] if isinstance(value, list) else value


def _numbers(value: Any) -> list[float]:
    numbers = [number for number in value if is_number(number)] if isinstance(value, list) else []
    if not numbers:
        raise NoAnswer
    try:
        return [float(number) for number in numbers]
    except OverflowError:
        raise NoAnswer from None


def _texts(argument: Any) -> list[str]:
    """Return the texts that concat takes of an argument: texts, and all elements of a list.

    A number is ignored, as in Java.
    """
    if isinstance(argument, list):
        return [java_text(item) for item in argument if item is not None]
    return [argument] if isinstance(argument, str) else []


FUNCTIONS = {
    "min": minimum,
    "max": maximum,
    "sum": total,
    "avg": average,
    "stddev": deviation,
    "length": length,
    "size": length,
    "concat": concat,
    "append": append,
}


_WORD = re.compile(r"true|false|null|-?[\d.]+(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}


def read_literal(cursor: Cursor) -> Any:
    cursor.skip_blanks()
    if cursor.is_at("'", '"'):
        return cursor.string()
    if cursor.accept("["):
        with cursor.nested():
            return _read_list(cursor)
    if cursor.accept("{"):
        with cursor.nested():
            return _read_map(cursor)
    found = cursor.match(_WORD)
    if not found:
        return cursor.refuse("expected a value")
    if found[0] in _WORDS:
        return _WORDS[found[0]]
    number = number_in(found[0])
    return cursor.refuse("expected a number") if number is None else number


def _read_list(cursor: Cursor) -> list[Any]:
    values: list[Any] = []
    if cursor.skip_blanks().accept("]"):
        return values
    while True:
        values.append(read_literal(cursor))
        if cursor.skip_blanks().accept("]"):
            return values
        cursor.expect(",")


def _read_map(cursor: Cursor) -> dict[str, Any]:
    members: dict[str, Any] = {}
    if cursor.skip_blanks().accept("}"):
        return members
    while True:
        if not cursor.skip_blanks().is_at("'", '"'):
            cursor.refuse("expected a quoted name")
        name = cursor.string()
        cursor.expect(":")
        members[name] = read_literal(cursor)
        if cursor.skip_blanks().accept("}"):
            return members
        cursor.expect(",")


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
            condition = ConditionParser(cursor).read_alternatives()
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
        arguments.append(ConditionParser(cursor).argument())
        if cursor.skip_blanks().accept(")"):
            return tuple(arguments)
        cursor.expect(",")


_OPERATOR = re.compile(r"[<>=!~]+|[A-Za-z]+(?=\s)")
_PATTERN = re.compile(r"/((?:[^/\\]|\\.)*)/([a-zA-Z]*)", re.DOTALL)

Condition = Any
"""One of the conditions above."""


class ConditionParser:
    """Parser of conditions. The paths inside may in turn contain conditions."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

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
        path = _read_path(self._cursor, _INNER_NAME)
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
