"""Parsing of JSON, with integers of any size and a limit on the nesting depth."""

import json
import re
from typing import Any

import orjson

MAX_DEPTH = 200
"""The maximum depth. It leaves room for embedding a document in others below the limit of the serializer."""
SERIALIZER_DEPTH = 254
"""The maximum depth that orjson writes."""
DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
LONG_NUMBER = b"0" * 19
PAIR, HALF = rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..", rb"(\\u[dD][89a-fA-F]..)"
ESCAPED_SURROGATE = re.compile(PAIR + b"|" + HALF + rb"|\\.", re.DOTALL)
"""Any escape sequence, so that `\\\\` is not the start of another one. Its group is a lone surrogate."""


def loads(body: bytes) -> Any:
    """Return the JSON value.

    Raises:
        ValueError: when the text is invalid
        RecursionError: when it is nested too deeply.
    """
    value = orjson.loads(body)
    # Only the slower parser keeps all digits of long integers. Both parsers must accept the text.
    return json.loads(body) if has_long_number(body) else value


def has_long_number(text: bytes) -> bool:
    """Return True if the text contains 19 consecutive digits, ten times as fast as with a regular expression."""
    return LONG_NUMBER in text.translate(DIGITS_AS_ZEROS)


def loads_repaired(body: bytes) -> Any:
    """Return the JSON value with lone surrogates replaced.

    Raises:
        ValueError: when the text is invalid
        RecursionError: when it is nested too deeply.
    """
    try:
        return loads(body)
    except ValueError as error:
        if "surrogate" not in str(error):
            raise
        return loads(replace_lone_surrogates(body))


def find_non_finite(body: bytes) -> tuple[Any, list[tuple[str, str]]]:
    """Return the value of text that is JSON but for NaN and Infinity, with None in their places, and where they are.

    Each entry is a path, such as `outputData.ratios[3]`, with the word that stands there. Python writes these words.

    Raises:
        ValueError: when the text is otherwise invalid
        RecursionError: when it is nested too deeply.
    """
    found: list[tuple[str, str]] = []
    value = json.loads(replace_lone_surrogates(body), parse_constant=_NonFinite)
    return _without_non_finite(value, "", found), found


class _NonFinite(str):
    """NaN, Infinity or -Infinity in a text."""


def _without_non_finite(value: Any, path: str, found: list[tuple[str, str]]) -> Any:
    if isinstance(value, _NonFinite):
        found.append((path, str(value)))
        return None
    if isinstance(value, dict):
        prefix = f"{path}." if path else ""
        return {name: _without_non_finite(each, f"{prefix}{name}", found) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_non_finite(each, f"{path}[{number}]", found) for number, each in enumerate(value)]
    return value


def replace_lone_surrogates(body: bytes) -> bytes:
    """Return the body with lone surrogates replaced, which databases cannot store.

    JavaScript clients produce them by truncating strings.
    """
    return ESCAPED_SURROGATE.sub(lambda match: b"\\ufffd" if match[1] else match[0], body) if b"\\" in body else body


def is_too_deep(value: Any, body: bytes, limit: int) -> bool:
    """Return True if the value is nested deeper than the limit.

    The value is traversed only if the body has enough brackets.
    """
    return body.count(b"[") + body.count(b"{") > limit and not _is_writable(value, limit) and is_deeper(value, limit)


def _is_writable(value: Any, limit: int) -> bool:
    """Return True if the serializer shows that the value is not deeper than the limit: it writes that many levels.

    This takes a tenth of the time of a traversal in Python. Integers beyond 64 bits cannot be written.
    """
    for _ in range(SERIALIZER_DEPTH - limit):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def is_deeper(value: Any, limit: int) -> bool:
    """Return True if the value is nested deeper than the limit."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > limit:
            return True
        inner = (each for each in level if isinstance(each, dict | list))
        level = [each for one in inner for each in (one.values() if isinstance(one, dict) else one)]
    return False


def schema_message(error: Any) -> str:
    """Return the message of a schema's error. The library names only two values of an enumeration."""
    options = getattr(error.kind, "options", None)
    if options is None:
        return str(error.message)
    listed = ", ".join(json.dumps(option, ensure_ascii=False) for option in options)
    return f"{error.message.rpartition(' is not one of ')[0]} is not one of {listed}"
