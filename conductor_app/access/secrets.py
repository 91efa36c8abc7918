"""Secrets: `${workflow.secrets.NAME}` is stored as written and resolved when a worker claims the task."""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

from ..core.expressions import resolve_secrets
from ..core.expressions.json_walk import replace_texts
from ..core.masking import REDACTED
from ..models import Secret, Variable
from .secret_cache import cached_secrets

SECRET_PREFIX, VARIABLE_PREFIX = "CONDUCTOR_SECRET_", "CONDUCTOR_ENV_"
MIN_VERBATIM_LENGTH = 8
"""The minimum length of a secret that is redacted in reports of workers. Shorter texts may occur by coincidence."""
MIN_REDACTED_LENGTH = 4
"""The minimum length of a redacted text. Redacting shorter ones would make messages unreadable."""


def is_environment_secret(name: str) -> bool:
    """Return True if the server's environment has the secret. It then takes precedence over the table."""
    return SECRET_PREFIX + name in os.environ


def environment_secret_names() -> list[str]:
    """Return the names of the secrets in the server's environment."""
    return sorted(
        name.removeprefix(SECRET_PREFIX)
        for name in os.environ
        if name.startswith(SECRET_PREFIX) and name != SECRET_PREFIX
    )


def load_secrets(names: Collection[str]) -> dict[str, str]:
    """Return the existing secrets with these names, from the server's environment or from the table."""
    from_environment = {name: os.environ[SECRET_PREFIX + name] for name in names if is_environment_secret(name)}
    remaining = set(names) - from_environment.keys()
    return from_environment | (cached_secrets(remaining) if remaining else {})


def substitute_secrets(value: Any, secret_names: Collection[str]) -> Any:
    """Return the value with its secrets resolved, for the worker that claims the task. The result is never stored.

    `secret_names`: the secrets that the author of the step names. Names that appear only in data are not resolved.
    Otherwise a user who can start a run, or report for a worker, could read any secret.
    """
    return resolve_secrets(value, load_secrets(secret_names).get) if secret_names else value


def redact_verbatim(value: Any, secret_values: Iterable[str]) -> Any:
    """Return a copy of a worker's report with literal occurrences of these texts replaced by `***`."""
    for secret in sorted(secret_values, key=len, reverse=True):
        if len(secret) >= MIN_VERBATIM_LENGTH:
            value = replace_texts(value, partial(_redact_text, secret=secret), holding=secret)
    return value


def _redact_text(text: str, secret: str) -> str:
    return text.replace(secret, REDACTED)


def redact(value: Any, secret_names: Collection[str], extra_texts: Collection[str] = ()) -> Any:
    """Return a copy of the value with all spellings of these secrets replaced by `***`.

    `extra_texts`: other confidential texts.
    """
    secret_values = [*(load_secrets(secret_names).values() if secret_names else ()), *extra_texts]
    texts = sorted({text for stored in secret_values for text in _secret_spellings(stored)}, key=len, reverse=True)
    if not texts:
        return value
    pattern = re.compile("|".join(map(re.escape, texts)))
    return replace_texts(value, lambda text: _redact_truncated_end(pattern.sub(REDACTED, text), texts), holding="")


def redact_all(value: Any) -> Any:
    """Return a copy of the value with all spellings of every secret of this server replaced by `***`, for a page."""
    return redact(value, {*environment_secret_names(), *Secret.objects.values_list("pk", flat=True)})


def _redact_truncated_end(text: str, secret_texts: list[str]) -> str:
    """Return the text without the start of a secret at its end: an excerpt may be cut within a secret."""
    for secret_text in secret_texts:
        position = text.find(secret_text[:MIN_REDACTED_LENGTH], max(0, len(text) - len(secret_text)))
        if position >= 0 and secret_text.startswith(text[position:]):
            return text[:position] + REDACTED
    return text


def _secret_spellings(stored: str) -> Iterator[str]:
    """Yield the texts that reveal a secret: its value and its parts, plain and as URLs and JSON encode them."""
    for text in (stored, *_json_parts(stored)):
        if len(text) >= MIN_REDACTED_LENGTH:
            yield from {text, quote(text), quote(text, safe=""), quote_plus(text), json.dumps(text)[1:-1]}


def _json_parts(stored: str) -> Iterator[str]:
    """Yield the texts and numbers in a JSON secret, which expressions may address individually."""
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
    """Return the secrets and variables that a task definition requests for its tasks (`runtimeMetadata`)."""
    requested = [name for name in names if isinstance(name, str)]
    values = load_secrets(requested)
    values |= _load_variables(set(requested) - values.keys())
    return {name: values[name] for name in requested if name in values}


def _load_variables(names: Collection[str]) -> dict[str, str]:
    from_environment = {
        name: os.environ[VARIABLE_PREFIX + name] for name in names if VARIABLE_PREFIX + name in os.environ
    }
    remaining = set(names) - from_environment.keys()
    return from_environment | (
        dict(Variable.objects.filter(name__in=remaining).values_list("name", "value")) if remaining else {}
    )
