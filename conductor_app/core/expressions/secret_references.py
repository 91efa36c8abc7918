"""Resolution of secrets, which happens when a worker claims the task."""

import json
import re
from collections.abc import Callable
from typing import Any

from .java_text import java_text
from .json_walk import replace_texts
from .references import SecretReference, parse_reference

# Resolved texts may hold stray braces from anywhere, so this looks at each expression without braces by itself.
_SECRET_CANDIDATE = re.compile(r"(?<!\$)\$\{([^{}]*)\}")


def resolve_secrets(value: Any, secret: Callable[[str], str | None]) -> Any:
    """Return the value with every `${workflow.secrets.NAME[.path]}` replaced.

    A missing secret becomes null, or "" within a text.
    """
    return replace_texts(value, lambda text: _replace_secrets(text, secret))


def _replace_secrets(text: str, secret: Callable[[str], str | None]) -> Any:
    if "secrets" not in text:
        return text
    whole = _SECRET_CANDIDATE.fullmatch(text)
    if whole and isinstance(reference := parse_reference(whole[1]), SecretReference):
        return _read_secret(reference, secret)
    return _SECRET_CANDIDATE.sub(lambda found: _splice(found, secret), text)


def _splice(found: re.Match[str], secret: Callable[[str], str | None]) -> str:
    reference = parse_reference(found[1])
    if not isinstance(reference, SecretReference):
        return found[0]
    value = _read_secret(reference, secret)
    return "" if value is None else java_text(value)


def _read_secret(reference: SecretReference, secret: Callable[[str], str | None]) -> Any:
    stored = secret(reference.name) if reference.name else None
    if stored is None or reference.is_whole:
        return stored
    try:
        return reference.read(json.loads(stored))
    except (ValueError, RecursionError):
        return None
