"""The secrets that are kept in the table, as this process has read them last."""

import logging
from collections.abc import Iterable

from .. import clock
from ..models import Secret
from . import vault

log = logging.getLogger(__name__)

MAX_AGE_MS = 2_000
"""How long what was read of the table counts as its state: a change is noticed by every process within this time."""
MAX_CACHED = 1_000


class SecretCache:
    """Values by name, with the moment of their reading; a name that is not there is remembered as well."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[int, str | None]] = {}

    def read(self, names: Iterable[str]) -> dict[str, str]:
        """The secrets among these names: one query for all that are not fresh."""
        now, requested = clock.now(), set(names)
        fresh = {name: self.values[name] for name in requested if self._is_fresh(name, now)}
        if stale := requested - fresh.keys():
            rows = dict(Secret.objects.filter(name__in=stale).values_list("name", "sealed"))
            read = {name: (now, _decrypt_secret(name, rows.get(name))) for name in stale}
            self._remember(read)
            fresh |= read
        return {name: value for name, (_, value) in fresh.items() if value is not None}

    def _is_fresh(self, name: str, now: int) -> bool:
        entry = self.values.get(name)
        return entry is not None and 0 <= now - entry[0] < MAX_AGE_MS

    def _remember(self, read: dict[str, tuple[int, str | None]]) -> None:
        if len(self.values) > MAX_CACHED:
            self.values = {}
        self.values |= read


_remembered = SecretCache()


def cached_secrets(names: Iterable[str]) -> dict[str, str]:
    """The secrets of the table that have these names."""
    return _remembered.read(names)


def clear_cache() -> None:
    """Read anew what is asked for next."""
    _remembered.values = {}


def _decrypt_secret(name: str, sealed: str | None) -> str | None:
    if sealed is None:
        return None
    try:
        return vault.decrypt(name, sealed)
    except vault.DecryptionFailed:
        log.error("secret_unreadable", extra={"secret": name})
        return None
