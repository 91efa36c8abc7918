"""Cache of the secrets in the table."""

import logging
from collections.abc import Iterable

from .. import clock, process_state
from ..models import Secret
from . import vault

log = logging.getLogger(__name__)

MAX_AGE_MS = 2_000
"""The lifetime of a cached secret, in milliseconds. Every process sees a change within this time."""
MAX_CACHED = 1_000


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


_cache = process_state.slot(SecretCache)


def cached_secrets(names: Iterable[str]) -> dict[str, str]:
    """Return the secrets of the table with these names."""
    return _cache.value.read(names)


def clear_cache() -> None:
    """Discard all cached secrets."""
    _cache.reset()


def _decrypt_secret(name: str, sealed: str | None) -> str | None:
    if sealed is None:
        return None
    try:
        return vault.decrypt(name, sealed)
    except vault.DecryptionFailed:
        log.error("secret_unreadable", extra={"secret": name})
        return None
