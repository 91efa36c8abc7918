"""Syntax errors of scripts in all languages. Helper processes parse the scripts and do not execute them."""

from collections.abc import Iterable
from hashlib import blake2b
from itertools import accumulate
from typing import NamedTuple

from conductor_app.scripts.pool import ScriptsUnavailable, evaluate
from conductor_app.utils import process_state
from conductor_app.utils.process_state import Slot

SECONDS = 2.0
"""The time for the scripts of one document. Those that are left then are not checked."""
MAX_KNOWN = 10_000
MAX_JQ_LENGTH, MAX_JQ_NESTING = 10_000, 500
"""A larger jq program is not checked: the compiler takes more than linear time, and nothing interrupts it."""
CHECKERS = {"javascript": "javascript-syntax", "jq": "jq-syntax", "python": "python-syntax"}


class SyntaxFault(NamedTuple):
    """A syntax error and its place in the script, from 1; 0 if the engine does not name it."""

    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.message
        return f"{self.message} (line {self.line}{f', column {self.column}' if self.column else ''})"


class ScriptText(NamedTuple):
    """A script and its language: `javascript`, `jq` or `python`."""

    language: str
    source: str


_known: Slot[dict[bytes, SyntaxFault | None]] = process_state.slot(dict)


def syntax_faults(scripts: Iterable[ScriptText]) -> dict[ScriptText, SyntaxFault]:
    """Return the faults of the scripts that cannot be parsed.

    A script counts as free of faults if no helper process is available to parse it.
    """
    known = _known.value
    wanted = {script: _digest(script) for script in scripts if not _is_slow(script)}
    for language in CHECKERS:
        fresh = [script for script, digest in wanted.items() if script.language == language and digest not in known]
        if fresh:
            _parse(language, fresh)
    faults = ((script, known.get(digest)) for script, digest in wanted.items())
    return {script: fault for script, fault in faults if fault is not None}


def _is_slow(script: ScriptText) -> bool:
    if script.language != "jq":
        return False
    if len(script.source) > MAX_JQ_LENGTH:
        return True
    nesting = accumulate({"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0) for letter in script.source)
    return max(nesting, default=0) > MAX_JQ_NESTING


def _parse(language: str, scripts: list[ScriptText]) -> None:
    try:
        checked = evaluate(CHECKERS[language], "", [each.source for each in scripts], SECONDS, key="syntax")
    except ScriptsUnavailable:
        return
    known = _known.value
    if len(known) > MAX_KNOWN:
        known.clear()
    # After the time limit, the list is shorter than that of the scripts.
    for script, found in zip(scripts, checked.value or (), strict=False):
        known[_digest(script)] = None if found is None else SyntaxFault(*found)


def _digest(script: ScriptText) -> bytes:
    return blake2b(f"{script.language}\0{script.source}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
