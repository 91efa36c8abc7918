"""Placeholders of prompts: `${name}` is replaced by a prompt variable."""

import json
import re
from collections.abc import Mapping
from typing import Any

PLACEHOLDER = re.compile(r"\$\{([^${}]{1,255})\}")


def fill_placeholders(text: str, variables: Mapping[str, Any]) -> str:
    """Return the text with its placeholders replaced. Unknown names stay; objects and lists are inserted as JSON."""

    def value(match: re.Match[str]) -> str:
        name = match[1].strip()
        return as_text(variables[name]) if name in variables else match[0]

    return PLACEHOLDER.sub(value, text) if variables else text


def as_text(value: Any) -> str:
    """Return a value as it stands in a prompt: texts and numbers plain, other values as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
