"""Secrets at every place of a value, as if the author of a step had written the value."""

from collections.abc import Collection
from typing import Any

from conductor_app.access.secrets import load_secrets
from conductor_app.core.secret_places import resolve_places, restore_places, value_at


def substitute_written(value: Any, names: Collection[str]) -> Any:
    """Return the value with its secrets resolved, as the input of a step that names these secrets."""
    input = {"value": value}
    places = restore_places(input, {}, input) if names else ()
    return value_at(resolve_places(input, places, load_secrets(names).get), ("value",))
