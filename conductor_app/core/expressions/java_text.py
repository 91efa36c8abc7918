"""JSON values as text: as a Java server prints them, which clients compare and parse, or as JSON."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from json import JSONEncoder, encoder
from typing import Any

_ESCAPED = encoder.encode_basestring
_ENCODER = JSONEncoder(ensure_ascii=False)


def java_text(value: Any) -> str:
    """Return the value as Java's `toString` prints it: `null`, `true`, `1.0`, `{a=1, b=x}`, `[1, 2]`."""
    return value if type(value) is str else _print(value, "=", ", ", str)


def json_text(value: Any) -> str:
    """Return the value as compact JSON with numbers in Java's format."""
    return _print(value, ":", ",", _ESCAPED)


def field_text(value: Any) -> str:
    """Return the text of a field to which a value of any type is given: nothing for null, and JSON for non-texts."""
    return value if type(value) is str else "" if value is None else json_text(value)


def quote_value(value: Any, limit: int = 100) -> str:
    """Return the first characters of a value as JSON, for a message about it."""
    return "".join(islice(_ENCODER.iterencode(value), limit))[:limit]


def java_number(value: int | float) -> str:
    """Return a number in Java's format: doubles always with a point, and `1.0E7` from ten million."""
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value) if value == 0 or 1e-3 <= abs(value) < 1e7 else _scientific(value)


def _scientific(value: float) -> str:
    digits, exponent = f"{value!r}e0".lower().split("e")[:2]
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    significant = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent) - (len(whole + fraction) - len(significant))
    significant = significant.rstrip("0") or "0"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{point - 1}"


def _print(value: Any, colon: str, comma: str, text: Callable[[str], str]) -> str:
    """Return the printed value. Printing is not recursive, so deep documents are only long texts."""
    pieces: list[str] = []
    # The stack of values to print, with the punctuation between them wrapped in tuples.
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if type(item) is tuple:
            pieces.append(item[0])
        elif isinstance(item, dict):
            pending.append(("}",))
            pending.extend(reversed(_members(item, colon, comma, text)))
            pieces.append("{")
        elif isinstance(item, list):
            pending.append(("]",))
            pending.extend(reversed(_elements(item, comma)))
            pieces.append("[")
        else:
            pieces.append(_scalar(item, text))
    return "".join(pieces)


def _members(mapping: Mapping[str, Any], colon: str, comma: str, text: Callable[[str], str]) -> list[Any]:
    printed: list[Any] = []
    for key, value in mapping.items():
        lead = comma if printed else ""
        printed += [(f"{lead}{text(str(key))}{colon}",), value]
    return printed


def _elements(values: Sequence[Any], comma: str) -> list[Any]:
    printed: list[Any] = []
    for value in values:
        if printed:
            printed.append((comma,))
        printed.append(value)
    return printed


def _scalar(value: Any, text: Callable[[str], str]) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    return java_number(value) if isinstance(value, int | float) else text(str(value))
