"""Secrets out, without their values, and what is sent for a value (api §1.10)."""

from typing import Any

import orjson

from ....core.errors import Invalid
from ....models import Secret

REDACTED = "***"


def wire_secret(row: Secret) -> dict[str, Any]:
    """What there is to know of a secret: nothing of its value."""
    return {"name": row.name, "partial": REDACTED, "created_at": row.created_at, "updated_at": row.updated_at}


def wire_secret_with_tags(row: Secret) -> dict[str, Any]:
    """An ExtendedSecret."""
    return {"name": row.name, "tags": row.tags}


def decode_text(body: bytes) -> str:
    """A value as it was meant: most clients send it as it is, one as a JSON string (api §8.3). Raises Invalid."""
    try:
        value = orjson.loads(body)
    except ValueError:
        value = None
    if isinstance(value, str):
        return value
    try:
        return body.decode()
    except UnicodeDecodeError:
        # The bytes themselves may be secret: they are not repeated.
        raise Invalid("The value must be text in UTF-8.") from None
