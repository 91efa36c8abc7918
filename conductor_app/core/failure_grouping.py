"""The line of an error that says most about its cause. Lists, sentences and failure groups show this line."""

import json
import re
from typing import Any

from .reasons import MAX_ATTEMPT_REASON_LENGTH, shorten_reason

MAX_LINE_LENGTH = 300
_MAX_ROUNDS = 100
_MAX_DEPTH = 3
_TRACEBACK = "Traceback (most recent call last)"
_WRAPPERS = (
    re.compile(r"Task \S+ failed with status: \w+ and reason: '(.*?)(?:'\.?$|'\. Task \S+ failed with |$)", re.DOTALL),
    re.compile(r"Sub workflow [^\n]{1,600}? failure reason: (.*?)(?:… \(see workflow \S+\))?$", re.DOTALL),
)
"""Sentences of a run about its task, and of a SUB_WORKFLOW task about its run, around the reason itself."""
_CAUSE = re.compile(r"^([ \t]*)(?:Caused by|\[cause\]): *(\S.*)$", re.MULTILINE)
_NET_CAUSE = re.compile(r"[\w.]+Exception: .* ---> ([\w.]+(?:: .*)?)$")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: |:?$)")
_JSON_OBJECT = re.compile(r"\[?\s*\{")
_MESSAGE_KEYS = (
    "message",
    "errormessage",
    "error_message",
    "error_description",
    "detail",
    "details",
    "msg",
    "description",
    "title",
    "reason",
    "error",
    "errors",
)
"""Keys of an error document in lower case, the most informative first."""


def informative_line(text: str, most: int = MAX_LINE_LENGTH) -> str:
    """Return the line of an error that says most about its cause, cut to `most` characters.

    This is the last line of a Python traceback, the innermost cause of a Java, .NET or JavaScript stack trace, the
    message of a JSON document, and otherwise the first line that is not blank.
    """
    line = shorten_reason(text, MAX_ATTEMPT_REASON_LENGTH).strip()
    for _ in range(_MAX_ROUNDS):
        found = _next_line(line).strip()
        if not found or found == line:
            break
        line = found
    line = _first_line(line)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _next_line(text: str) -> str:
    """Return what is inside of one layer of a text: a quotation, a stack trace, or a document."""
    for wrapper in _WRAPPERS:
        if found := wrapper.match(text):
            return found[1]
    return _python_exception(text) or _innermost_cause(text) or _document_message(text) or _first_line(text)


def _python_exception(text: str) -> str:
    """Return the exception at the end of the last traceback. If the end is cut off, return its last frame."""
    lines = text.rpartition(_TRACEBACK)[2].splitlines()[1:] if _TRACEBACK in text else []
    lines = [line for line in lines if line.strip()]
    is_indented = any(line[0].isspace() for line in lines)
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    if exceptions:
        return exceptions[0] if is_indented else exceptions[-1]
    frames = [line for line in lines if line.lstrip().startswith('File "')]
    return (frames or lines or [""])[-1]


def _innermost_cause(text: str) -> str:
    """Return the last cause. Indented ones are read only if there are no others: they belong to suppressed errors."""
    causes = _CAUSE.findall(text)
    outer = [line for indent, line in causes if not indent] or [line for _, line in causes]
    if outer:
        return outer[-1]
    found = _NET_CAUSE.match(_first_line(text))
    return found[1].rpartition(" ---> ")[2] or found[1] if found else ""


def _document_message(text: str) -> str:
    """Return the message of the JSON document that ends the text, with the text before it."""
    found = _JSON_OBJECT.search(text)
    if not found:
        return ""
    try:
        message = _message_in(json.loads(text[found.start() :]), _MAX_DEPTH)
    except (ValueError, RecursionError):
        return ""
    before = _first_line(text[: found.start()]).rstrip(" :-")
    return f"{before}: {message}" if message and before else message


def _message_in(document: Any, depth: int) -> str:
    if isinstance(document, str):
        return document.strip()
    if isinstance(document, list) and document and depth:
        return _message_in(document[0], depth - 1)
    if not isinstance(document, dict) or not depth:
        return ""
    values = {name.lower(): value for name, value in document.items()}
    return next((found for key in _MESSAGE_KEYS if (found := _message_in(values.get(key), depth - 1))), "")


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(_TRACEBACK)), lines[0] if lines else "")
