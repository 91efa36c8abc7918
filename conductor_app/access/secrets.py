"""Secrets: `${workflow.secrets.NAME}` stays as it is in everything stored, and is replaced when a worker is told."""

import json
import os
import re
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from ..core.expressions import resolve_secrets
from ..core.expressions.walking import with_texts_replaced

SECRET, VARIABLE = "CONDUCTOR_SECRET_", "CONDUCTOR_ENV_"
HIDDEN = "***"
SHORTEST_HIDDEN = 4
"""Characters below which a text is no secret, and would make everything unreadable if it were hidden."""


def secret(name: str) -> str | None:
    """The secret with this name, from the environment of the server."""
    return os.environ.get(SECRET + name)


def revealed(value: Any, named: Collection[str]) -> Any:
    """The value with its secrets put in: for the worker that it is handed to, never for a table.

    `named`: the secrets that the step's author names. Others, which only data spells, are not given: whoever can start
    a run, or answer for a worker, could read any secret else.
    """
    return resolve_secrets(value, lambda name: secret(name) if name in named else None) if named else value


def hidden(value: Any, named: Collection[str]) -> Any:
    """A copy of the value in which the values of these secrets read `***`, whatever a worker has made of them."""
    texts = sorted({text for name in named for text in _spellings(name)}, key=len, reverse=True)
    if not texts:
        return value
    pattern = re.compile("|".join(map(re.escape, texts)))
    return with_texts_replaced(value, lambda text: _without_begun(pattern.sub(HIDDEN, text), texts), holding="")


def _without_begun(text: str, hidden_texts: list[str]) -> str:
    """The text without the beginning of a secret at its end: an excerpt may have been cut in the middle of one."""
    for hidden_text in hidden_texts:
        place = text.find(hidden_text[:SHORTEST_HIDDEN], max(0, len(text) - len(hidden_text)))
        if place >= 0 and hidden_text.startswith(text[place:]):
            return text[:place] + HIDDEN
    return text


def _spellings(name: str) -> Iterator[str]:
    """The texts that give a secret away: its value or a part of it, as it is and as addresses and JSON spell it."""
    stored = secret(name) or ""
    for text in (stored, *_parts(stored)):
        if len(text) >= SHORTEST_HIDDEN:
            yield from {text, quote(text), quote(text, safe=""), quote_plus(text), json.dumps(text)[1:-1]}


def _parts(stored: str) -> Iterator[str]:
    """The texts and numbers in a secret that is JSON: expressions may name one of them."""
    try:
        pending = [json.loads(stored)]
    except (ValueError, RecursionError):
        return
    while pending:
        part = pending.pop()
        if isinstance(part, dict | list):
            pending += part.values() if isinstance(part, dict) else part
        elif isinstance(part, str | int | float):
            yield str(part)


def delivered(names: list[str]) -> dict[str, str]:
    """The secrets and variables that a task definition asks to be delivered beside its tasks (`runtimeMetadata`)."""
    found = {name: secret(name) or os.environ.get(VARIABLE + name) for name in names}
    return {name: value for name, value in found.items() if value is not None}
