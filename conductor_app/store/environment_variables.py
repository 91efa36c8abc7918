"""The environment variables that definitions may read."""

import os

from .. import clock, process_state
from .statements import fetch

PREFIX = "CONDUCTOR_ENV_"
UNPREFIXED_NAMES = ("NETFLIX_ENV", "NETFLIX_STACK")
"""Names that expressions may use without the prefix (execution §9.2). Other variables of the process are hidden
(§11 row 29)."""
CACHE_MS = 2_000
"""The lifetime of cached variables, in milliseconds."""


class VariableCache:
    """Cache of the variables in the table."""

    def __init__(self) -> None:
        self.loaded_at = -CACHE_MS
        self.values: dict[str, str] = {}

    def current(self) -> dict[str, str]:
        now = clock.now()
        if not 0 <= now - self.loaded_at < CACHE_MS:
            self.values = dict(fetch("SELECT name, value FROM conductor_variable"))
            self.loaded_at = now
        return self.values


_cache = process_state.slot(VariableCache)


def clear_cache() -> None:
    """Discard the cache."""
    _cache.reset()


def process_variables() -> dict[str, str]:
    """Return the variables of the process environment, without the prefix in their names."""
    prefixed = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
    return prefixed | {name: os.environ[name] for name in UNPREFIXED_NAMES if name in os.environ}


def all_variables() -> dict[str, str]:
    """Return all variables by name. The process environment takes precedence over the table."""
    return _cache.value.current() | process_variables()
