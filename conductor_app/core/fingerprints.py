"""Group failures by where they happened and by their message without ids, numbers and times."""

import re
from collections.abc import Iterator
from hashlib import blake2b
from itertools import groupby

from .informative_lines import informative_line

MAX_LENGTH = 1000
"""Maximum number of characters of a message that are compared."""

_BUILD = re.compile(r"^(?P<name>.+)@(?P<build>v?\d[\w.+-]*|[0-9a-f]{7,40})$")
_WORDS = r"(?:http|https|status|code|error|returned|response)"
_BETWEEN = r"(?:[ /:=.()-]|\d\.\d|code|status|was|is){1,12}"
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
_ARGUMENT = re.compile(r"\b\w*(?:Error|Exception|Warning|Exit|Interrupt)\b:? ?\(?$")
"""What stands before the argument of an exception, which names the cause."""
_STATUS_CODE = re.compile(r"^[45]\d\d$")
_HIDDEN = "\n"
"""Replaces a part that a pattern has matched, so that no later pattern matches it again."""


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


def split_variable_parts(message: str) -> list[tuple[str, bool]]:
    """Split the informative line of a message into parts, each with True if it varies between failures of one group.

    Status codes and arguments of exceptions do not count as variable, because they distinguish failures.
    """
    text = informative_line(message)
    rest, marks = text, [False] * len(text)
    for pattern, _name in _REPLACED:
        for found in pattern.finditer(rest):
            begin, end = (found.end(1), found.end()) if found.groups() else found.span()
            if not _names_the_cause(text, begin, end):
                marks[begin:end] = [True] * (end - begin)
            rest = rest[:begin] + _HIDDEN * (end - begin) + rest[end:]
    return [("".join(part), varies) for varies, part in _group_by_mark(text, marks)]


def _names_the_cause(text: str, begin: int, end: int) -> bool:
    return bool(_STATUS_CODE.match(text[begin:end]) or _ARGUMENT.search(text[:begin]))


def _group_by_mark(text: str, marks: list[bool]) -> Iterator[tuple[bool, list[str]]]:
    for varies, pairs in groupby(zip(text, marks, strict=True), key=lambda pair: pair[1]):
        yield varies, [character for character, _ in pairs]
