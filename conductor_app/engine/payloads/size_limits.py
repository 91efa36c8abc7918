"""Size limits of payloads that clients send."""

from typing import Any

from ...core.errors import PayloadTooLarge
from ...models.fields import dumps


def payload_size(payload: Any) -> int:
    """Return the size of a payload as stored, in bytes."""
    return len(dumps(payload) or "") if payload is not None else 0


def refuse_large(payload: Any, max_bytes: int, what: str = "The input") -> int:
    """Check the size of a payload, and return it.

    Raises:
        PayloadTooLarge: when it exceeds the limit.
    """
    size = payload_size(payload)
    if size > max_bytes:
        raise PayloadTooLarge(f"{what} has {size} bytes; the limit is {max_bytes} bytes.")
    return size
