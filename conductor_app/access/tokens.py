"""Tokens: signed by this server, checked without a query, and good for longer than any client keeps one."""

from functools import cache
from typing import Any

import jwt
from django.utils.crypto import salted_hmac

from .. import clock, conf
from ..core.errors import Unauthenticated
from . import keys

ALGORITHM = "HS256"
RECHECK_MS = 30_000
"""How long a key that was withdrawn may still be used by a process that has just looked."""
MOST_REMEMBERED = 1_000


@cache
def signing_key() -> bytes:
    """Derived from the server's secret, so that tokens are good for nothing else."""
    return salted_hmac("conductor_app.access.tokens", "signing key", algorithm="sha256").digest()


def issue(key_id: str, application: str) -> str:
    """A token for the holder of a key."""
    issued_at = clock.now() // 1000
    claims = {"sub": key_id, "name": application, "iat": issued_at, "exp": issued_at + conf.token_seconds}
    return jwt.encode(claims, signing_key(), ALGORITHM)


class Remembered:
    """What this process knows of tokens that it has checked: (holder, key, expiry, when the key was looked up)."""

    def __init__(self) -> None:
        self.tokens: dict[str, tuple[str, str, int, int]] = {}

    def put(self, token: str, known: tuple[str, str, int, int]) -> None:
        if len(self.tokens) >= MOST_REMEMBERED:
            self.tokens.clear()
        self.tokens[token] = known


_remembered = Remembered()


def holder(token: str) -> str:
    """The application that the token was given to; raises Unauthenticated with the word that clients act on."""
    now = clock.now()
    known = _remembered.tokens.get(token)
    if known is None or not 0 <= now - known[3] < RECHECK_MS:
        claims = _claims(token)
        _refuse_withdrawn(claims)
        known = (str(claims["name"]), str(claims["sub"]), int(claims["exp"]) * 1000, now)
        _remembered.put(token, known)
    if now >= known[2]:
        raise Unauthenticated("The token has expired.", code="EXPIRED_TOKEN")
    return known[0]


def _claims(token: str) -> dict[str, Any]:
    try:
        # The expiry is compared by the product's own clock, above.
        return jwt.decode(token, signing_key(), [ALGORITHM], options={"verify_exp": False, "verify_iat": False,
                                                                      "require": ["sub", "name", "exp"]})  # fmt: skip
    except (jwt.InvalidTokenError, ValueError):
        raise Unauthenticated("The token is not valid.", code="INVALID_TOKEN") from None


def _refuse_withdrawn(claims: dict[str, Any]) -> None:
    if not keys.is_active(str(claims["sub"])):
        raise Unauthenticated("The key of this token is no longer valid.", code="INVALID_TOKEN")
