"""Values of the server's environment that definitions may read: those that were meant for them, no others."""

import os

PREFIX = "CONDUCTOR_ENV_"
NAMED = ("NETFLIX_ENV", "NETFLIX_STACK")
"""Names that expressions may use bare (execution §9.2); any other variable of the process stays unseen (§11 row 29)."""


def environment() -> dict[str, str]:
    """The values by name; those with the prefix without it."""
    prefixed = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
    return prefixed | {name: os.environ[name] for name in NAMED if name in os.environ}
