"""Tokens: signed by this server, checked without a query, and good for longer than any client keeps one."""

from functools import cache
from typing import Any

import jwt
from django.utils.crypto import salted_hmac

from .. import clock, conf
from ..core.errors import Unauthenticated

ALGORITHM = "HS256"
MOST_REMEMBERED = 1_000


@cache
def signing_key() -> bytes:
    """Derived from the server's secret, so that tokens are good for nothing else."""
    return salted_hmac("conductor_app.access.tokens", "signing key", algorithm="sha256").digest()


def issue_token(key_id: str, application: str) -> str:
    """A token for the holder of a key."""
    issued_at = clock.now() // 1000
    claims = {"sub": key_id, "name": application, "iat": issued_at, "exp": issued_at + conf.token_seconds}
    return jwt.encode(claims, signing_key(), ALGORITHM)


class VerifiedTokens:
    """The tokens whose signature this process has checked: (key, expiry)."""

    def __init__(self) -> None:
        self.tokens: dict[str, tuple[str, int]] = {}

    def put(self, token: str, known: tuple[str, int]) -> None:
        if len(self.tokens) >= MOST_REMEMBERED:
            self.tokens.clear()
        self.tokens[token] = known


_remembered = VerifiedTokens()


def verify_token(token: str) -> str:
    """The key that the token was given to; raises Unauthenticated with the word that clients act on."""
    known = _remembered.tokens.get(token)
    if known is None:
        claims = _parse_claims(token)
        known = (str(claims["sub"]), int(claims["exp"]) * 1000)
        _remembered.put(token, known)
    if clock.now() >= known[1]:
        raise Unauthenticated("The token has expired.", code="EXPIRED_TOKEN")
    return known[0]


def _parse_claims(token: str) -> dict[str, Any]:
    try:
        # The expiry is compared by the product's own clock, above.
        return jwt.decode(token, signing_key(), [ALGORITHM], options={"verify_exp": False, "verify_iat": False,
                                                                      "require": ["sub", "name", "exp"]})  # fmt: skip
    except (jwt.InvalidTokenError, ValueError):
        raise Unauthenticated("The token is not valid.", code="INVALID_TOKEN") from None
