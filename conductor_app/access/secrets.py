"""Secrets: `${workflow.secrets.NAME}` stays as it is in everything stored, and is replaced when a worker is told."""

import os
from collections.abc import Collection
from typing import Any

from ..core.expressions import resolve_secrets

SECRET, VARIABLE = "CONDUCTOR_SECRET_", "CONDUCTOR_ENV_"


def secret(name: str) -> str | None:
    """The secret with this name, from the environment of the server."""
    return os.environ.get(SECRET + name)


def revealed(value: Any, named: Collection[str]) -> Any:
    """The value with its secrets put in: for the worker that it is handed to, never for a table.

    `named`: the secrets that the step's author names. Others, which only data spells, are not given: whoever can start
    a run, or answer for a worker, could read any secret else.
    """
    return resolve_secrets(value, lambda name: secret(name) if name in named else None) if named else value


def delivered(names: list[str]) -> dict[str, str]:
    """The secrets and variables that a task definition asks to be delivered beside its tasks (`runtimeMetadata`)."""
    found = {name: secret(name) or os.environ.get(VARIABLE + name) for name in names}
    return {name: value for name, value in found.items() if value is not None}
