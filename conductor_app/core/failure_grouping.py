"""Grouping of failures by where they happened and by their message without ids, numbers and times.

Lists, sentences and groups show the line of an error that says most about its cause.
"""

import json
import re
from hashlib import blake2b

from .errors import MAX_ATTEMPT_REASON_LENGTH, shorten_reason
from .primitives import JsonValue

MAX_LINE_LENGTH = 300
_MAX_ROUNDS = 100
_MAX_DEPTH = 3
_TRACEBACK = "Traceback (most recent call last)"
_WRAPPERS = (
    re.compile(r"Task \S+ failed with status: \w+ and reason: '(.*?)(?:'\.?$|'\. Task \S+ failed with |$)", re.DOTALL),
    re.compile(r"Failed to invoke (?:HTTP|\w+) task due to: *(.+)$", re.DOTALL),
    re.compile(r"Sub workflow [^\n]{1,600}? failure reason: (.*?)(?:… \(see workflow \S+\))?$", re.DOTALL),
)
"""Sentences of a run about its task, of a task about its request or its run, around the reason itself."""
_CAUSE = re.compile(r"^([ \t]*)(?:Caused by|\[cause\]): *(\S.*)$", re.MULTILINE)
_NET_CAUSE = re.compile(r"[\w.]+Exception: .* ---> ([\w.]+(?:: .*)?)$")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: |:?$)")
_JSON_OBJECT = re.compile(r"\[?\s*\{")
_MESSAGE_KEYS = (
    "message", "errormessage", "error_message", "error_description", "detail", "details", "msg", "description",
    "title", "reason", "error", "errors",
)  # fmt: skip
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


def _message_in(document: JsonValue, depth: int) -> str:
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


MAX_LENGTH = 1000
"""Maximum number of characters of a message that are compared."""

_BUILD = re.compile(r"^(?P<name>.+)@(?P<build>v?\d[\w.+-]*|[0-9a-f]{7,40})$")
_WORDS = r"(?:http|https|status|code|error|returned|response|responded|answers|answered)"
_BETWEEN = r"(?:[ /:=.()-]|\d\.\d|code|status|was|is|with){1,12}"
_STATUS = re.compile(rf"(?i)\b({_WORDS}{_BETWEEN})([1-5]\d\d)\b")
_LEADING_STATUS = re.compile(r"^([45]\d\d)(?=[\s:,-])")
_PRIVATE = 0xE000
"""First of 1000 private-use characters. Each stands for a status code that must survive the replacements."""
_PLACEHOLDER = re.compile(f"[{chr(_PRIVATE)}-{chr(_PRIVATE + 999)}]")
_REPLACED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\b"), "<time>"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b"), "<email>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<ip>"),
    (re.compile(r"(https?://[^\s?#\"']{1,300})[?#][^\s\"']*"), r"\1?<query>"),
    (re.compile(r"\"[^\"\n]{0,300}\"|`[^`\n]{0,300}`|(?<!\w)'[^'\n]{0,300}'(?!\w)"), "<text>"),
    (re.compile(r"(?i)\b0x[0-9a-f]+\b"), "<hex>"),
    (re.compile(r"\b(?=[0-9a-fA-F]{0,63}\d)(?=[0-9a-fA-F]{0,63}[a-fA-F])[0-9a-fA-F]{8,64}\b"), "<hex>"),
    (re.compile(r"\b(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])[A-Za-z0-9_-]{20,200}\b"), "<token>"),
    (re.compile(r"[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?"), "<n>"),
)
"""Applied in this order: the more specific pattern first."""
_VARYING = re.compile(f"({'|'.join(sorted({name.removeprefix(chr(92) + '1?') for _pattern, name in _REPLACED}))})")
"""The placeholders of parts that vary within a group."""


def normalize_message(message: str) -> str:
    """Return the message with ids, numbers, times, quotations and the like replaced by placeholders."""
    line = informative_line(_PLACEHOLDER.sub("", message), MAX_LENGTH)
    text = _LEADING_STATUS.sub(lambda found: _placeholder(found[1]), line)
    text = _STATUS.sub(lambda found: found[1] + _placeholder(found[2]), text)
    for pattern, name in _REPLACED:
        text = pattern.sub(name, text)
    text = _PLACEHOLDER.sub(lambda found: str(ord(found[0]) - _PRIVATE), text)
    return " ".join(text.split())


def _placeholder(code: str) -> str:
    return chr(_PRIVATE + int(code))


def fingerprint(definition: str, ref: str, message: str) -> str:
    """Return the digest of a failure, equal for failures of the same cause."""
    return blake2b(
        "\0".join((definition, ref, normalize_message(message))).encode("utf-8", "replace"), digest_size=12
    ).hexdigest()


def build_of(worker: str) -> str:
    """Return the build in a worker's id after `@` (`w7@41`, `mailer@v2.1.0`, `ocr@3f2a9c1`), or ""."""
    found = _BUILD.match(worker)
    return found["build"] if found else ""


def split_variable_parts(pattern: str) -> list[tuple[str, bool]]:
    """Split a normalized message into parts, each with True if it stands for a part that varies within the group."""
    parts = _VARYING.split(pattern)
    return [(part, place % 2 == 1) for place, part in enumerate(parts) if part]


def stable_title(pattern: str) -> str:
    """Return a normalized message with an ellipsis for each part that varies within the group."""
    return "".join("…" if varies else text for text, varies in split_variable_parts(pattern))
