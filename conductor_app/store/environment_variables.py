"""Values of the environment that definitions may read: those that were meant for them, no others."""

import os

from .. import clock
from .statements import fetch

PREFIX = "CONDUCTOR_ENV_"
NAMED = ("NETFLIX_ENV", "NETFLIX_STACK")
"""Names that expressions may use bare (execution §9.2); any other variable of the process stays unseen (§11 row 29)."""
FRESH_MS = 2_000
"""How long what was read of the table counts as its state."""


class VariableCache:
    """The variables that are kept in the table, as this process has read them last."""

    def __init__(self) -> None:
        self.read_at, self.values = -FRESH_MS, {}

    def current(self) -> dict[str, str]:
        now = clock.now()
        if not 0 <= now - self.read_at < FRESH_MS:
            self.values = dict(fetch("SELECT name, value FROM conductor_variable"))
            self.read_at = now
        return self.values


_remembered = VariableCache()


def clear_cache() -> None:
    """Read the table anew when it is asked for next."""
    _remembered.read_at = -FRESH_MS


def process_variables() -> dict[str, str]:
    """The values that the process was started with by name; those with the prefix without it."""
    prefixed = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
    return prefixed | {name: os.environ[name] for name in NAMED if name in os.environ}


def all_variables() -> dict[str, str]:
    """The values by name. What the process was started with comes before what is kept in the table."""
    return _remembered.current() | process_variables()
