"""Secrets and environment variables of the server, read through a cache; and the redaction of secrets in texts.

Both come from the environment of the process or from a table. `tasks/secrets.py` gives them to workers, and says
which are redacted in what a worker sends.
"""

import json
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

from ..core.expressions.json_text import replace_texts
from ..core.masking import REDACTED
from ..core.primitives import JsonValue
from ..db.statements import fetch
from ..utils import clock, process_state
from .encryption import DecryptionFailed, decrypt
from .models import Secret, Variable

log = logging.getLogger(__name__)
SECRET_PREFIX = "CONDUCTOR_SECRET_"
MAX_AGE_MS = 2_000
"""The lifetime of cached secrets and variables, in milliseconds. Every process sees a change within this time."""
MAX_CACHED = 1_000
MIN_VERBATIM_LENGTH = 8
"""The minimum length of a secret that is redacted in reports of workers. Shorter texts may occur by coincidence."""
SAFE_IN_ADDRESSES = "!#$%&'()*+,/:;=?@[]~"
"""What `requests` leaves as it is when it quotes an address."""
MIN_REDACTED_LENGTH = 4
"""The minimum length of a redacted text. Redacting shorter ones would make messages unreadable."""


class SecretCache:
    """Secrets by name, with the time of their reading. Missing names are cached, too."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[int, str | None]] = {}

    def read(self, names: Iterable[str]) -> dict[str, str]:
        """Return the secrets with these names. One query reads all that are not cached."""
        # Another thread may replace the dictionary at any time. What was read before must not be in the new one.
        now, requested, values = clock.now(), set(names), self.values
        entries = ((name, values.get(name)) for name in requested)
        fresh = {name: entry for name, entry in entries if entry is not None and 0 <= now - entry[0] < MAX_AGE_MS}
        if stale := requested - fresh.keys():
            rows = dict(Secret.objects.filter(name__in=stale).values_list("name", "sealed"))
            read = {name: (now, _decrypt_secret(name, rows.get(name))) for name in stale}
            if len(values) > MAX_CACHED:
                values.clear()
            values.update(read)
            fresh |= read
        return {name: value for name, (_, value) in fresh.items() if value is not None}


_secret_cache = process_state.slot(SecretCache)


def cached_secrets(names: Iterable[str]) -> dict[str, str]:
    """Return the secrets of the table with these names."""
    return _secret_cache.value.read(names)


def clear_secret_cache() -> None:
    """Discard all cached secrets."""
    _secret_cache.reset()


def _decrypt_secret(name: str, sealed: str | None) -> str | None:
    if sealed is None:
        return None
    try:
        return decrypt(name, sealed)
    except DecryptionFailed:
        log.error("secret_unreadable", extra={"secret": name})
        return None


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


def redact_verbatim(value: JsonValue, secret_values: Iterable[str]) -> Any:
    """Return a copy of a worker's report with literal occurrences of these texts replaced by `***`."""
    for secret in sorted(secret_values, key=len, reverse=True):
        if len(secret) >= MIN_VERBATIM_LENGTH:
            value = replace_texts(value, partial(_redact_text, secret=secret), holding=secret, replaces_keys=True)
    return value


def _redact_text(text: str, secret: str) -> str:
    return text.replace(secret, REDACTED)


def redact(value: JsonValue, secret_names: Collection[str], extra_texts: Collection[str] = ()) -> Any:
    """Return a copy of the value with all spellings of these secrets replaced by `***`.

    `extra_texts`: other confidential texts.
    """
    secret_values = [*(load_secrets(secret_names).values() if secret_names else ()), *extra_texts]
    texts = sorted({text for stored in secret_values for text in _secret_spellings(stored)}, key=len, reverse=True)
    if not texts:
        return value
    pattern = re.compile("|".join(map(re.escape, texts)))

    def redact_text(text: str) -> str:
        return _redact_truncated_end(pattern.sub(REDACTED, text), texts)

    return replace_texts(value, redact_text, holding="", replaces_keys=True)


def redact_all(value: JsonValue) -> Any:
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
            yield from {text, quote(text), quote(text, safe=""), quote(text, safe=SAFE_IN_ADDRESSES), quote_plus(text)}
            yield from {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
            yield from _parts_in_addresses(text)


def _parts_in_addresses(text: str) -> Iterator[str]:
    """Yield what remains of a secret in an address that a message names: without user, query, fragment, line breaks."""
    one_line = re.sub(r"[\t\r\n]", "", text).strip()
    head = re.split(r"[?#]", one_line, maxsplit=1)[0]
    rest = head.partition("://")[2] or head
    authority, _, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    for part in (one_line, head, rest, f"{host}/{path}" if path else host, path):
        if len(part) >= MIN_VERBATIM_LENGTH:
            yield part


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


VARIABLE_PREFIX = "CONDUCTOR_ENV_"
UNPREFIXED_NAMES = ("NETFLIX_ENV", "NETFLIX_STACK")
"""Names that expressions may use without the prefix (execution §9.2). Other variables of the process are hidden
(§11 row 29)."""


def all_variables() -> dict[str, str]:
    """Return all variables by name. The process environment takes precedence over the table."""
    return _variable_cache.value.current() | process_variables()


def process_variables() -> dict[str, str]:
    """Return the variables of the process environment, without the prefix in their names."""
    prefixed = {
        name.removeprefix(VARIABLE_PREFIX): value
        for name, value in os.environ.items()
        if name.startswith(VARIABLE_PREFIX)
    }
    return prefixed | {name: os.environ[name] for name in UNPREFIXED_NAMES if name in os.environ}


class VariableCache:
    """Cache of the variables in the table."""

    def __init__(self) -> None:
        self.loaded_at = -MAX_AGE_MS
        self.values: dict[str, str] = {}

    def current(self) -> dict[str, str]:
        now = clock.now()
        if not 0 <= now - self.loaded_at < MAX_AGE_MS:
            self.values = dict(fetch("SELECT name, value FROM conductor_variable"))
            self.loaded_at = now
        return self.values


_variable_cache = process_state.slot(VariableCache)


def clear_variable_cache() -> None:
    """Discard the cache."""
    _variable_cache.reset()


def load_variables(names: Collection[str]) -> dict[str, str]:
    """Return the existing variables with these names, read without a cache."""
    from_environment = {
        name: os.environ[VARIABLE_PREFIX + name] for name in names if VARIABLE_PREFIX + name in os.environ
    }
    remaining = set(names) - from_environment.keys()
    return from_environment | (
        dict(Variable.objects.filter(name__in=remaining).values_list("name", "value")) if remaining else {}
    )
