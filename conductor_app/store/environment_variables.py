"""Values of the environment that definitions may read: those that were meant for them, no others."""

import os

from .. import clock
from .statements import fetch

PREFIX = "CONDUCTOR_ENV_"
BARE_NAMES = ("NETFLIX_ENV", "NETFLIX_STACK")
"""Names that expressions may use bare (execution §9.2); any other variable of the process stays unseen (§11 row 29)."""
CACHE_MS = 2_000
"""The period in which cached variables are valid."""


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


_remembered = VariableCache()


def clear_cache() -> None:
    """Discard the cache."""
    _remembered.loaded_at = -CACHE_MS


def process_variables() -> dict[str, str]:
    """Return the variables of the process environment; names with the prefix lose it."""
    prefixed = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
    return prefixed | {name: os.environ[name] for name in BARE_NAMES if name in os.environ}


def all_variables() -> dict[str, str]:
    """Return all variables by name. The process environment takes precedence over the table."""
    return _remembered.current() | process_variables()
