"""Secrets: kept as literal expressions in stored inputs, filled in when an attempt is handed out (execution §9.2)."""

import os
from typing import Any

from ..core.expressions import resolve_secrets

PREFIX = "CONDUCTOR_SECRET_"


def with_secrets(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs as the worker gets them; never stored, never logged."""
    return resolve_secrets(inputs, secret)


def secret(name: str) -> str | None:
    """The value of one secret, or None."""
    return os.environ.get(f"{PREFIX}{name}")
