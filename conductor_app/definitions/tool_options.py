"""The options of a workflow as a tool of agents: `metadata.mcp` of its definition."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import Invalid

KEY = "mcp"
MAX_NAME, MAX_TEXT = 64, 4_000
"""Providers of models accept names of tools up to this length."""
MAX_WAIT_SECONDS = 120
DEFAULT_WAIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """How agents see a workflow. `wait_seconds`: how long a call waits for the end of its run; 0 for not at all."""

    name: str
    title: str
    description: str
    wait_seconds: int


def tool_options(name: str, document: Mapping[str, Any]) -> ToolOptions | None:
    """Return the options of a workflow as a tool, or None if it is none.

    `metadata.mcp` is true, or an object with `name`, `title`, `description`, `waitSeconds` and `enabled`, each of them
    optional. A value of another type is ignored.
    """
    metadata = document.get("metadata")
    given = metadata.get(KEY) if isinstance(metadata, Mapping) else None
    options: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    if given is not True and (given is None or not isinstance(given, Mapping) or options.get("enabled") is False):
        return None
    seconds = options.get("waitSeconds")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        seconds = DEFAULT_WAIT_SECONDS
    return ToolOptions(
        tool_name(_text(options, "name") or name),
        _text(options, "title") or name,
        (_text(options, "description") or _text(document, "description") or f"Run the workflow {name}.")[:MAX_TEXT],
        int(max(0, min(seconds, MAX_WAIT_SECONDS))),
    )


def with_tool_switch(document: Mapping[str, Any], *, is_on: bool) -> dict[str, Any]:
    """Return a definition that is a tool, or is none. Other options stay.

    Raises:
        Invalid: when `metadata` of the definition is no object.
    """
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise Invalid("`metadata` of the definition must be an object.")
    given = metadata.get(KEY)
    if isinstance(given, Mapping):
        switched: Any = {**{key: value for key, value in given.items() if key != "enabled"}}
        switched = switched if is_on else {**switched, "enabled": False}
    else:
        switched = is_on
    return {**document, "metadata": {**metadata, KEY: switched}}


def tool_name(text: str) -> str:
    """Return a name that every provider of models accepts for a tool."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:MAX_NAME] or "_"


def _text(options: Mapping[str, Any], name: str) -> str:
    value = options.get(name)
    return value if isinstance(value, str) else ""
