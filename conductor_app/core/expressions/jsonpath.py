"""From the text of a path to its segments, as Jayway 2.4 reads it."""

import re
from functools import lru_cache
from typing import Any

from .condition_parser import ConditionParser
from .cursor import Cursor
from .descent import Descent
from .functions import FunctionCall
from .jsonpath_errors import BadPath
from .path import Path
from .segments import Filter, Index, Property, Slice, Wildcard

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
        return _slice(cursor, found)
    if cursor.match(_FILTER):
        return _filter(cursor)
    return cursor.refuse("expected ['name'], [0], [0:2], [*] or [?(…)]")


def _names(cursor: Cursor) -> tuple[str, ...]:
    names = [cursor.string()]
    while cursor.skip_blanks().accept(","):
        if not cursor.skip_blanks().is_at("'", '"'):
            cursor.refuse("expected a quoted name")
        names.append(cursor.string())
    cursor.expect("]")
    return tuple(names)


def _slice(cursor: Cursor, found: re.Match[str]) -> Slice:
    start, stop = (int(bound) if bound else None for bound in found.groups())
    if start is None and stop is None:
        cursor.refuse("a slice needs a beginning or an end; not so")
    return Slice(start, stop)


def _filter(cursor: Cursor) -> Filter:
    with cursor.nested():
        condition = ConditionParser(cursor, _read_inner_path).read_alternatives()
        if not cursor.match(_FILTER_END):
            cursor.refuse("expected ')]'")
    return Filter(condition)


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
