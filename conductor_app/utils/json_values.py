"""Parsing of JSON, with integers of any size and a limit on the nesting depth."""

import json
import re
from math import isinf
from typing import Any, NamedTuple

import orjson

MAX_DEPTH = 200
"""The maximum depth. It leaves room for embedding a document in others below the limit of the serializer."""
SERIALIZER_DEPTH = 254
"""The maximum depth that orjson writes."""
DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
LONG_NUMBER = b"0" * 19
HUGE_INTEGER = b"0" * 309
"""The least integer of so many digits that it can be too large for a double."""
MAX_EXPLAINED = 2_000_000
"""The maximum number of commas and opening brackets in text whose unreadable values are looked for, in 2 s."""
STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
NO_UTF_8 = re.compile("[\udc80-\udcff]")
"""Bytes that are no UTF-8, as Python decodes them with `surrogateescape`."""
PAIR, HALF = rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..", rb"(\\u[dD][89a-fA-F]..)"
ESCAPED_SURROGATE = re.compile(PAIR + b"|" + HALF + rb"|\\.", re.DOTALL)
"""Any escape sequence, so that `\\\\` is not the start of another one. Its group is a lone surrogate."""


def loads(body: bytes) -> Any:
    """Return the JSON value.

    Raises:
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
        RecursionError: when it is nested too deeply.
    """
    try:
        return loads(body)
    except ValueError as error:
        if "surrogate" not in str(error):
            raise
        return loads(replace_lone_surrogates(body))


class UnreadableValue(NamedTuple):
    """A value that JSON or this server does not have: its path, such as `outputData.ratios[3]`, and what to do."""

    path: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path[:200] or 'it'} is {self.text}. {self.advice}"


def find_unreadable(body: bytes) -> tuple[Any, list[UnreadableValue]]:
    """Return the value of text that is JSON but for values that cannot be read, with None in their places, and these.

    They are NaN and Infinity, which Python writes, numbers too large for a double, and text that is not UTF-8. Of
    values that are nested too deeply, the inner ones are left out.

    Raises:
        ValueError: when the text is otherwise invalid, or has too many values.
    """
    found: list[UnreadableValue] = []
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_EXPLAINED:
        raise ValueError("The text has too many values.")
    body = replace_lone_surrogates(body)
    try:
        return _without_unreadable(_loads_leniently(body), "", found), found
    except RecursionError:
        found.clear()
    return _without_unreadable(_loads_leniently(_without_inner_values(body)), "", found), found


def _loads_leniently(body: bytes) -> Any:
    has_huge_integer = HUGE_INTEGER in body.translate(DIGITS_AS_ZEROS)
    return json.loads(
        body.decode(errors="surrogateescape"),
        parse_constant=_NonFinite,
        parse_float=_read_float,
        parse_int=_read_integer if has_huge_integer else None,
    )


class _NonFinite(str):
    """NaN, Infinity or -Infinity in a text."""


class _HugeNumber(str):
    """A number in a text that is too large for a double."""


def _read_float(text: str) -> float | _HugeNumber:
    value = float(text)
    return _HugeNumber(text) if isinf(value) else value


def _read_integer(text: str) -> int | _HugeNumber:
    return _HugeNumber(text) if isinf(float(text)) else int(text)


def _without_inner_values(body: bytes) -> bytes:
    """Return JSON text with null in the deepest values. One level too many stays, so that its depth can be refused."""
    parts: list[bytes] = []
    depth, end, kept = 0, 0, MAX_DEPTH + 1
    for match in STRING_OR_BRACKET.finditer(body):
        if match[0] in b"[{":
            depth += 1
            if depth == kept + 1:
                parts += (body[end : match.start()], b"null")
        elif match[0] in b"]}":
            depth -= 1
            if depth == kept:
                end = match.end()
    return b"".join(parts) + (body[end:] if depth <= kept else b"")


def _without_unreadable(value: Any, path: str, found: list[UnreadableValue]) -> Any:
    if isinstance(value, str):
        return _readable_text(value, path, found)
    if isinstance(value, dict):
        prefix = f"{path}." if path else ""
        readable = {}
        for name, each in value.items():
            name = _readable_text(name, path, found, "an object with a name") or ""
            readable[name] = _without_unreadable(each, f"{prefix}{name}", found)
        return readable
    if isinstance(value, list):
        return [_without_unreadable(each, f"{path}[{number}]", found) for number, each in enumerate(value)]
    return value


def _readable_text(text: str, path: str, found: list[UnreadableValue], kind: str = "text") -> str | None:
    if isinstance(text, _NonFinite):
        found.append(UnreadableValue(path, str(text), "JSON has no such number. Send null or a text instead."))
    elif isinstance(text, _HugeNumber):
        shown = text if len(text) <= 30 else f"{text[:30]}… of {len(text)} characters"
        found.append(UnreadableValue(path, shown, "The largest number is 1.79e308. Send null or a text instead."))
    elif NO_UTF_8.search(text):
        found.append(UnreadableValue(path, f"{kind} that is not UTF-8", "Send the body as UTF-8."))
    else:
        return text
    return None


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
