"""Positions of paths such as `tasks[0].name` in a JSON text, and the kind of the document in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .fields import TASK_DEFINITION

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
PART = re.compile(r"\[(\d+)\]|\['([^']*)'\]|\[([^\]]*)\]|([^.\[\]]+)")
Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextPosition:
    """A stretch of one line: lines count from one, columns from nought, in the units that browsers count in."""

    line: int
    column: int
    length: int


class TextPositions:
    """The places of all values of a well-formed JSON text; those of a text that is not go as far as it is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans: dict[Keys, tuple[int, int]] = {}
        for keys, span in _value_spans(text):
            # A repeated key has its last value, so the last position counts.
            self._spans[keys] = span
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def of(self, path: str) -> TextPosition | None:
        """Return the position of a path, or of the closest enclosing value; None for an empty text."""
        keys = keys_of(path)
        while keys and keys not in self._spans:
            keys = keys[:-1]
        span = self._spans.get(keys)
        return None if span is None else self._position(*span)

    def _position(self, begin: int, end: int) -> TextPosition:
        line = self._text.count("\n", 0, begin) + 1
        start = self._starts[line - 1]
        return TextPosition(line, _utf16_length(self._text[start:begin]), _utf16_length(self._text[begin:end]))


def keys_of(path: str) -> Keys:
    """Return the keys of a path, with indexes as text. Accepts `tasks[0].decisionCases[a b][1]` and `a['b c'].d`."""
    return tuple(next(part for part in found if part is not None) for found in _parts(path))


def _parts(path: str) -> Iterator[tuple[str | None, ...]]:
    for found in PART.finditer(path):
        yield found.groups()


def _utf16_length(text: str) -> int:
    """Return the length of a text as browsers count it: characters outside the basic plane count twice."""
    return len(text) + sum(character > "\uffff" for character in text)


def _value_spans(text: str) -> Iterator[tuple[Keys, tuple[int, int]]]:
    """Yield every value with its span: scalars as they are, maps and lists by their key or opening bracket."""
    stack: list[list[str]] = []  # the open brackets, each with the key that is being read in it
    named: tuple[int, int] | None = None
    is_key = False
    for found in TOKEN.finditer(text):
        token, span = found.group(), found.span()
        if is_key and token[0] == '"':
            stack[-1][1], named, is_key = token[1:-1], span, False
        elif token in "{[":
            yield _current_path(stack), named or span
            stack.append([token, "0" if token == "[" else ""])
            named, is_key = None, token == "{"
        elif token in "}]":
            if stack:
                stack.pop()
            named, is_key = None, False
        elif token == ",":
            named, is_key = None, bool(stack) and _advance_level(stack[-1])
        elif token != ":":
            yield _current_path(stack), span


def _current_path(stack: list[list[str]]) -> Keys:
    return tuple(key for _bracket, key in stack)


def _advance_level(level: list[str]) -> bool:
    """Advance to the next element. Returns True if a key follows."""
    if level[0] == "{":
        return True
    level[1] = str(int(level[1]) + 1)
    return False


KIND_NAMES = {
    "schema": "schemas",
    "task": "tasks",
    "queue-limit": "queue-limits",
    "form-template": "form-templates",
    "workflow": "workflows",
    "event-handler": "event-handlers",
    "schedule": "schedules",
    "alert": "alerts",
    "role": "roles",
}
"""The values of `kind` in a document, and the plural of the kind that each names."""
TASK_FIELDS = frozenset(spec.name for spec in TASK_DEFINITION)


def recognize_kind(document: dict[str, Any]) -> str:
    """Return the stated kind of a document, or the kind that has such fields, or an empty text."""
    if isinstance(stated := document.get("kind"), str):
        return stated
    if isinstance(document.get("tasks"), list):
        return "workflow"
    if "startWorkflowRequest" in document:
        return "schedule"
    if "event" in document and "actions" in document:
        return "event-handler"
    if "conditions" in document:
        return "alert"
    if "jsonSchema" in document or "templateUI" in document:
        return "form-template"
    if "permissions" in document:
        return "role"
    if "data" in document and "name" in document:
        return "schema"
    return "task" if "name" in document and document.keys() - {"kind"} <= TASK_FIELDS else ""
