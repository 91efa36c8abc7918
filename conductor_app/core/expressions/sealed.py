"""Secrets, put in at the last moment: when a task is handed to its worker."""

import json
import re
from collections.abc import Callable
from typing import Any

from .java_text import java_text
from .references import Secret, refer
from .walking import with_texts_replaced

# Resolved texts may hold stray braces from anywhere, so this looks at each expression without braces by itself.
_CANDIDATE = re.compile(r"(?<!\$)\$\{([^{}]*)\}")


def resolve_secrets(value: Any, secret: Callable[[str], str | None]) -> Any:
    """The value with every `${workflow.secrets.NAME[.path]}` replaced; a missing one is null, or nothing in a text."""
    return with_texts_replaced(value, lambda text: _with_secrets(text, secret))


def _with_secrets(text, secret):
    if "secrets" not in text:
        return text
    whole = _CANDIDATE.fullmatch(text)
    if whole and isinstance(refer(whole[1]), Secret):
        return _read(refer(whole[1]), secret)
    return _CANDIDATE.sub(lambda found: _spliced(found, secret), text)


def _spliced(found, secret) -> str:
    reference = refer(found[1])
    if not isinstance(reference, Secret):
        return found[0]
    value = _read(reference, secret)
    return "" if value is None else java_text(value)


def _read(reference: Secret, secret):
    stored = secret(reference.name) if reference.name else None
    if stored is None or reference.is_whole:
        return stored
    try:
        return reference.read(json.loads(stored))
    except (ValueError, RecursionError):
        return None
