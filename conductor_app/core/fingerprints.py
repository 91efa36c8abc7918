"""What makes two failures the same: where they happened, and their message without what differs from time to time."""

import re
from hashlib import blake2b

LONGEST = 1000
"""Characters of a message that are looked at."""

_BUILD = re.compile(r"^(?P<name>.+)@(?P<build>v?\d[\w.+-]*|[0-9a-f]{7,40})$")
_WORDS = r"(?:http|https|status|code|error|returned|response)"
_BETWEEN = r"(?:[ /:=.()-]|\d\.\d|code|status|was|is){1,12}"
_STATUS = re.compile(rf"(?i)\b({_WORDS}{_BETWEEN})([1-5]\d\d)\b")
_LEADING_STATUS = re.compile(r"^([45]\d\d)(?=[\s:,-])")
_PRIVATE = 0xE000
"""Where characters begin that no text has: a status code that is kept stands as one of them meanwhile."""
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
"""In this order: the wider pattern first."""


def normalize_message(message: str) -> str:
    """The message with ids, numbers, times, quotations and the like replaced by what they are."""
    text = _LEADING_STATUS.sub(lambda found: _placeholder(found[1]), telling_line(message))
    text = _STATUS.sub(lambda found: found[1] + _placeholder(found[2]), text)
    for pattern, name in _REPLACED:
        text = pattern.sub(name, text)
    text = _PLACEHOLDER.sub(lambda found: str(ord(found[0]) - _PRIVATE), text)
    return " ".join(text.split())


def _placeholder(code: str) -> str:
    return chr(_PRIVATE + int(code))


def telling_line(message: str) -> str:
    """The line that says what went wrong: the first one, or the last of a Python traceback."""
    lines = [line.strip() for line in _PLACEHOLDER.sub("", message[: 8 * LONGEST]).splitlines() if line.strip()]
    if not lines:
        return ""
    is_traceback = lines[0].startswith("Traceback (most recent call last)")
    return (lines[-1] if is_traceback else lines[0])[:LONGEST]


def fingerprint(definition: str, ref: str, message: str) -> str:
    """The same for all failures that an operator would call the same."""
    return blake2b(
        "\0".join((definition, ref, normalize_message(message))).encode("utf-8", "replace"), digest_size=12
    ).hexdigest()


def build_of(worker: str) -> str:
    """The build that a worker's id tells after an `@`: `w7@41`, `mailer@v2.1.0`, `ocr@3f2a9c1`; else empty."""
    found = _BUILD.match(worker)
    return found["build"] if found else ""
