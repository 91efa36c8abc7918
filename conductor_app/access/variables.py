"""Environment variables: `${workflow.env.NAME}`, from the process environment and from the table."""

import os
from collections.abc import Collection

from ..db.statements import fetch
from ..utils import clock, process_state
from .models import Variable
from .secrets import load_secrets

VARIABLE_PREFIX = "CONDUCTOR_ENV_"
UNPREFIXED_NAMES = ("NETFLIX_ENV", "NETFLIX_STACK")
"""Names that expressions may use without the prefix (execution §9.2). Other variables of the process are hidden
(§11 row 29)."""
CACHE_MS = 2_000
"""The lifetime of cached variables, in milliseconds."""


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
        self.loaded_at = -CACHE_MS
        self.values: dict[str, str] = {}

    def current(self) -> dict[str, str]:
        now = clock.now()
        if not 0 <= now - self.loaded_at < CACHE_MS:
            self.values = dict(fetch("SELECT name, value FROM conductor_variable"))
            self.loaded_at = now
        return self.values


_variable_cache = process_state.slot(VariableCache)


def clear_variable_cache() -> None:
    """Discard the cache."""
    _variable_cache.reset()


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
