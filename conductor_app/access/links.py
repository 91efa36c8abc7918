"""Links that carry their own permission: to one payload, for one purpose, for a while."""

from django.core.signing import Signer
from django.utils.crypto import constant_time_compare

from .. import clock
from ..core.errors import Forbidden

VALID_MS = 15 * 60 * 1000
SIGNER = Signer(salt="conductor.payload")


def link(path: str, purpose: str, valid_ms: int = VALID_MS) -> dict[str, str]:
    """What the query of such a link says."""
    expires = str(clock.now() + valid_ms)
    return {"operation": purpose, "expires": expires, "signature": _signature(path, purpose, expires)}


def check(path: str, purpose: str, said: dict[str, str]) -> None:
    """Raise Forbidden unless the link was made here, for this, and not too long ago."""
    expires, signature = said.get("expires", ""), said.get("signature", "")
    if not constant_time_compare(signature, _signature(path, purpose, expires)):
        raise Forbidden("The signature of this link is wrong.")
    if int(expires) < clock.now():
        raise Forbidden("This link has expired: ask for another.")


def _signature(path: str, purpose: str, expires: str) -> str:
    return SIGNER.signature(f"{purpose}\n{path}\n{expires}")
