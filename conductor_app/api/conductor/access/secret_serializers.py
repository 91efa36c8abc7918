"""Documents of secrets without their values, and the parsing of values (api §1.10)."""

from typing import Any

import orjson

from ....core.errors import Invalid
from ....core.masking import REDACTED
from ....models import Secret


def wire_secret(row: Secret) -> dict[str, Any]:
    """Return the metadata of a secret, without its value."""
    return {"name": row.name, "partial": REDACTED, "created_at": row.created_at, "updated_at": row.updated_at}


def wire_secret_with_tags(row: Secret) -> dict[str, Any]:
    """Return a secret as an ExtendedSecret."""
    return {"name": row.name, "tags": row.tags}


def decode_text(body: bytes) -> str:
    """Return the text that the client sent: most clients send it as it is, one as a JSON string (api §8.3).

    Raises:
        Invalid: when the body is not UTF-8.
    """
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
