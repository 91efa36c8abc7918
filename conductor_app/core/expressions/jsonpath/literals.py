"""Values written into a path: texts in either quote, numbers, true, false, null, lists and maps."""

import re
from typing import Any

from .comparisons import number_in
from .cursor import Cursor

_WORD = re.compile(r"true|false|null|-?[\d.]+(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}


def read_literal(cursor: Cursor) -> Any:
    """Read the value at the cursor."""
    cursor.skip_blanks()
    if cursor.is_at("'", '"'):
        return cursor.string()
    if cursor.accept("["):
        with cursor.nested():
            return _read_list(cursor)
    if cursor.accept("{"):
        with cursor.nested():
            return _read_map(cursor)
    return _read_word(cursor)


def _read_word(cursor: Cursor) -> Any:
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
