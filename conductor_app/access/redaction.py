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

SECRET_PREFIX, VARIABLE_PREFIX = "CONDUCTOR_SECRET_", "CONDUCTOR_ENV_"
REDACTED = "***"
MIN_VERBATIM_LENGTH = 8
"""Characters from which on a secret is looked for in what a worker says: less may well be there by chance."""
MIN_REDACTED_LENGTH = 4
"""Characters below which a text is no secret, and would make everything unreadable if it were hidden."""


def is_environment_secret(name: str) -> bool:
    """Whether the server's environment holds the secret: then that is the one."""
    return SECRET_PREFIX + name in os.environ


def environment_secret_names() -> list[str]:
    """The names of the secrets that the server's environment holds."""
    return sorted(
        name.removeprefix(SECRET_PREFIX)
        for name in os.environ
        if name.startswith(SECRET_PREFIX) and name != SECRET_PREFIX
    )


def load_secrets(names: Collection[str]) -> dict[str, str]:
    """The secrets with these names, where there are such: from the server's environment, else from the table."""
    from_environment = {name: os.environ[SECRET_PREFIX + name] for name in names if is_environment_secret(name)}
    remaining = set(names) - from_environment.keys()
    return from_environment | (cached_secrets(remaining) if remaining else {})


def substitute_secrets(value: Any, secret_names: Collection[str]) -> Any:
    """The value with its secrets put in: for the worker that it is handed to, never for a table.

    `secret_names`: the secrets that the author of the step names. Names that appear only in data are refused:
    otherwise a user who can start a run, or report for a worker, could read any secret.
    """
    return resolve_secrets(value, load_secrets(secret_names).get) if secret_names else value


def redact_verbatim(value: Any, secret_names: Collection[str]) -> Any:
    """A copy of what a worker says in which these secrets, word for word, read `***`."""
    for secret in sorted(load_secrets(secret_names).values() if secret_names else (), key=len, reverse=True):
        if len(secret) >= MIN_VERBATIM_LENGTH:
            value = replace_texts(value, partial(_redact_text, secret=secret), holding=secret)
    return value


def _redact_text(text: str, secret: str) -> str:
    return text.replace(secret, REDACTED)


def redact(value: Any, secret_names: Collection[str], extra_texts: Collection[str] = ()) -> Any:
    """A copy of the value in which the values of these secrets read `***`, whatever a worker has made of them.

    `extra_texts`: other texts that nobody is to read.
    """
    secret_values = [*(load_secrets(secret_names).values() if secret_names else ()), *extra_texts]
    texts = sorted({text for stored in secret_values for text in _secret_spellings(stored)}, key=len, reverse=True)
    if not texts:
        return value
    pattern = re.compile("|".join(map(re.escape, texts)))
    return replace_texts(value, lambda text: _redact_truncated_end(pattern.sub(REDACTED, text), texts), holding="")


def _redact_truncated_end(text: str, secret_texts: list[str]) -> str:
    """The text without the beginning of a secret at its end: an excerpt may have been cut in the middle of one."""
    for secret_text in secret_texts:
        position = text.find(secret_text[:MIN_REDACTED_LENGTH], max(0, len(text) - len(secret_text)))
        if position >= 0 and secret_text.startswith(text[position:]):
            return text[:position] + REDACTED
    return text


def _secret_spellings(stored: str) -> Iterator[str]:
    """The texts that give a secret away: its value or a part of it, as it is and as addresses and JSON spell it."""
    for text in (stored, *_json_parts(stored)):
        if len(text) >= MIN_REDACTED_LENGTH:
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
    requested = [name for name in names if isinstance(name, str)]
    found = load_secrets(requested)
    found |= _load_variables(set(requested) - found.keys())
    return {name: found[name] for name in requested if name in found}


def _load_variables(names: Collection[str]) -> dict[str, str]:
    from_environment = {
        name: os.environ[VARIABLE_PREFIX + name] for name in names if VARIABLE_PREFIX + name in os.environ
    }
    remaining = set(names) - from_environment.keys()
    return from_environment | (
        dict(Variable.objects.filter(name__in=remaining).values_list("name", "value")) if remaining else {}
    )
