"""Operators of filters. Each takes two values; ABSENT stands for a path without a result."""

import re
from typing import Any

from ..java_text import java_text
from .reading import ABSENT

_NUMERAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_MAX_NUMERAL_LENGTH = 400


def is_number(value: Any) -> bool:
    """Return True for a JSON number. Python would also accept True."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_in(text: str) -> int | float | None:
    """Return the number that the text represents, or None."""
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
