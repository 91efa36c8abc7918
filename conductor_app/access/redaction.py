"""Secrets: `${workflow.secrets.NAME}` stays as it is in everything stored, and is replaced when a worker is told."""

import json
import os
import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

from ..core.expressions import resolve_secrets
from ..core.expressions.json_walk import replace_texts
from ..models import Variable
from .secret_cache import cached_secrets

SECRET, VARIABLE = "CONDUCTOR_SECRET_", "CONDUCTOR_ENV_"
HIDDEN = "***"
SHORTEST_ECHO = 8
"""Characters from which on a secret is looked for in what a worker says: less may well be there by chance."""
SHORTEST_HIDDEN = 4
"""Characters below which a text is no secret, and would make everything unreadable if it were hidden."""


def is_environment_secret(name: str) -> bool:
    """Whether the server's environment holds the secret: then that is the one."""
    return SECRET + name in os.environ


def environment_secret_names() -> list[str]:
    """The names of the secrets that the server's environment holds."""
    return sorted(name.removeprefix(SECRET) for name in os.environ if name.startswith(SECRET) and name != SECRET)


def load_secrets(names: Collection[str]) -> dict[str, str]:
    """The secrets with these names, where there are such: from the server's environment, else from the table."""
    given = {name: os.environ[SECRET + name] for name in names if is_environment_secret(name)}
    left = set(names) - given.keys()
    return given | (cached_secrets(left) if left else {})


def substitute_secrets(value: Any, named: Collection[str]) -> Any:
    """The value with its secrets put in: for the worker that it is handed to, never for a table.

    `named`: the secrets that the step's author names. Others, which only data spells, are not given: whoever can start
    a run, or answer for a worker, could read any secret else.
    """
    return resolve_secrets(value, load_secrets(named).get) if named else value


def redact_verbatim(value: Any, named: Collection[str]) -> Any:
    """A copy of what a worker says in which these secrets, word for word, read `***`."""
    for secret in sorted(load_secrets(named).values() if named else (), key=len, reverse=True):
        if len(secret) >= SHORTEST_ECHO:
            value = replace_texts(value, partial(_redact_text, secret=secret), holding=secret)
    return value


def _redact_text(text: str, secret: str) -> str:
    return text.replace(secret, HIDDEN)


def redact(value: Any, named: Collection[str], also: Collection[str] = ()) -> Any:
    """A copy of the value in which the values of these secrets read `***`, whatever a worker has made of them.

    `also`: other texts that nobody is to read.
    """
    known = [*(load_secrets(named).values() if named else ()), *also]
    texts = sorted({text for stored in known for text in _secret_spellings(stored)}, key=len, reverse=True)
    if not texts:
        return value
    pattern = re.compile("|".join(map(re.escape, texts)))
    return replace_texts(value, lambda text: _redact_truncated_end(pattern.sub(HIDDEN, text), texts), holding="")


def _redact_truncated_end(text: str, hidden_texts: list[str]) -> str:
    """The text without the beginning of a secret at its end: an excerpt may have been cut in the middle of one."""
    for hidden_text in hidden_texts:
        place = text.find(hidden_text[:SHORTEST_HIDDEN], max(0, len(text) - len(hidden_text)))
        if place >= 0 and hidden_text.startswith(text[place:]):
            return text[:place] + HIDDEN
    return text


def _secret_spellings(stored: str) -> Iterator[str]:
    """The texts that give a secret away: its value or a part of it, as it is and as addresses and JSON spell it."""
    for text in (stored, *_json_parts(stored)):
        if len(text) >= SHORTEST_HIDDEN:
            yield from {text, quote(text), quote(text, safe=""), quote_plus(text), json.dumps(text)[1:-1]}


def _json_parts(stored: str) -> Iterator[str]:
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


def runtime_metadata(names: list[str]) -> dict[str, str]:
    """The secrets and variables that a task definition asks to be delivered beside its tasks (`runtimeMetadata`)."""
    asked = [name for name in names if isinstance(name, str)]
    found = load_secrets(asked)
    found |= _load_variables(set(asked) - found.keys())
    return {name: found[name] for name in asked if name in found}


def _load_variables(names: Collection[str]) -> dict[str, str]:
    given = {name: os.environ[VARIABLE + name] for name in names if VARIABLE + name in os.environ}
    left = set(names) - given.keys()
    return given | (dict(Variable.objects.filter(name__in=left).values_list("name", "value")) if left else {})
