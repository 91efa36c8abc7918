"""Tokens, which this server signs, and verifies without a query. Clients renew them before they expire."""

from contextlib import suppress
from typing import Any

import jwt

from .. import clock, process_state
from ..core.errors import Unauthenticated
from .server_keys import derive_keys

ALGORITHM = "HS256"
MAX_CACHED = 1_000
TOKEN_SECONDS = 86_400
"""The lifetime of a token."""


def signing_keys() -> tuple[bytes, ...]:
    """Return the keys that verify tokens. The first one also signs them."""
    return derive_keys("conductor_app.access.tokens", "signing key")


def issue_token(key_id: str, application: str) -> str:
    """Return a token for the holder of a key."""
    issued_at = clock.now() // 1000
    claims = {"sub": key_id, "name": application, "iat": issued_at, "exp": issued_at + TOKEN_SECONDS}
    return jwt.encode(claims, signing_keys()[0], ALGORITHM)


class VerifiedTokens:
    """Cache of the tokens with a verified signature, as (key, expiry)."""

    def __init__(self) -> None:
        self.tokens: dict[str, tuple[str, int]] = {}

    def put(self, token: str, key_and_expiry: tuple[str, int]) -> None:
        if len(self.tokens) >= MAX_CACHED:
            self.tokens.clear()
        self.tokens[token] = key_and_expiry


_verified_tokens = process_state.slot(VerifiedTokens)


def verify_token(token: str) -> str:
    """Return the key that the token was issued for.

    Raises:
        Unauthenticated: when the token is invalid or expired. Clients evaluate its code.
    """
    key_and_expiry = _verified_tokens.value.tokens.get(token)
    if key_and_expiry is None:
        claims = _parse_claims(token)
        key_and_expiry = (str(claims["sub"]), int(claims["exp"]) * 1000)
        _verified_tokens.value.put(token, key_and_expiry)
    if clock.now() >= key_and_expiry[1]:
        raise Unauthenticated("The token has expired.", code="EXPIRED_TOKEN")
    return key_and_expiry[0]


def _parse_claims(token: str) -> dict[str, Any]:
    # `verify_token` checks the expiry, with the clock of this project.
    options: Any = {"verify_exp": False, "verify_iat": False, "require": ["sub", "name", "exp"]}
    for key in signing_keys():
        with suppress(jwt.InvalidTokenError, ValueError):
            return jwt.decode(token, key, [ALGORITHM], options=options)
    raise Unauthenticated("The token is not valid.", code="INVALID_TOKEN")
