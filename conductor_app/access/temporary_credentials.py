"""Temporary credentials: a certificate says what somebody's client may do for a while, signed by that somebody's key.

The key of such credentials follows from the issuer's key and the certificate's seed, so nothing is stored (§6.3).
"""

import base64
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ..core.errors import Unauthenticated
from . import hawk
from .scopes import SCOPE_PATTERN

MAX_VALIDITY_MS = 31 * 24 * 3600 * 1000
MAX_SKEW_MS = 5 * 60 * 1000
SEED_PATTERN = re.compile(r"[A-Za-z0-9_-]{44}\Z")
CERTIFICATE_KEYS = {"version", "scopes", "start", "expiry", "seed", "signature"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is certified: the scopes, from when until when. Named credentials say who has issued them."""

    scopes: tuple[str, ...]
    start: int
    expiry: int
    seed: str
    signature: str
    issuer: str | None


def read_ext(text: str) -> tuple[Certificate | None, tuple[str, ...] | None]:
    """The certificate and the authorized scopes that a signature carries along; raises Unauthenticated."""
    if not text:
        return None, None
    try:
        document = json.loads(hawk.decode_base64(text))
    except (ValueError, RecursionError):
        raise Unauthenticated("The ext of the signature cannot be read.") from None
    if not isinstance(document, dict):
        raise Unauthenticated("The ext of the signature is no object.")
    certificate, authorized = document.get("certificate"), document.get("authorizedScopes")
    return (
        None if certificate is None else _parse_certificate(certificate),
        None if authorized is None else _parse_scopes(authorized, "authorizedScopes"),
    )


def _parse_certificate(document: Any) -> Certificate:
    if not isinstance(document, dict) or set(document) - {"issuer"} != CERTIFICATE_KEYS or document["version"] != 1:
        raise Unauthenticated("The certificate is not of version 1, or not complete.")
    start, expiry, seed, signature = document["start"], document["expiry"], document["seed"], document["signature"]
    if not all(type(time) is int and 0 <= time < 2**53 for time in (start, expiry)):
        raise Unauthenticated("The certificate begins or expires at no moment.")
    if not isinstance(seed, str) or not SEED_PATTERN.match(seed) or not isinstance(signature, str):
        raise Unauthenticated("The seed or the signature of the certificate is not as it should be.")
    if "issuer" in document and not (isinstance(document["issuer"], str) and document["issuer"]):
        raise Unauthenticated("The issuer of the certificate is no client.")
    scopes = _parse_scopes(document["scopes"], "scopes of the certificate")
    return Certificate(scopes, start, expiry, seed, signature, document.get("issuer"))


def _parse_scopes(document: Any, label: str) -> tuple[str, ...]:
    if not isinstance(document, list) or not all(
        isinstance(scope, str) and SCOPE_PATTERN.match(scope) for scope in document
    ):
        raise Unauthenticated(f"The {label} are no list of scopes.")
    return tuple(document)


def verify_certificate(certificate: Certificate, client_id: str, key: str, now: int) -> None:
    """Raise Unauthenticated unless the issuer's key has signed it for this client, and it holds now."""
    if certificate.start > now + MAX_SKEW_MS:
        raise Unauthenticated("The certificate does not hold yet.")
    if certificate.expiry < now - MAX_SKEW_MS:
        raise Unauthenticated("The certificate has expired.")
    if certificate.expiry - certificate.start > MAX_VALIDITY_MS:
        raise Unauthenticated("The certificate would hold for more than 31 days.")
    if certificate.issuer == client_id:
        raise Unauthenticated("The certificate names its holder as its issuer.")
    if not hawk.constant_time_equal(sign_certificate(certificate, client_id, key), certificate.signature):
        raise Unauthenticated("The certificate is not signed by its issuer.")


def sign_certificate(certificate: Certificate, client_id: str, key: str) -> str:
    """The signature of an issuer's key."""
    issuer_lines = [f"clientId:{client_id}", f"issuer:{certificate.issuer}"] if certificate.issuer else []
    lines = ["version:1", *issuer_lines, f"seed:{certificate.seed}", f"start:{certificate.start}",
             f"expiry:{certificate.expiry}", "scopes:", *certificate.scopes]  # fmt: skip
    return base64.b64encode(hawk.hmac_sha256(key, "\n".join(lines))).decode()


def temporary_key(certificate: Certificate, key: str) -> str:
    """The access token that goes with a certificate."""
    return base64.urlsafe_b64encode(hawk.hmac_sha256(key, certificate.seed)).decode().rstrip("=")


def issue_credentials(
    issuer: str, key: str, name: str, scopes: Sequence[str], *, start: int, expiry: int
) -> Mapping[str, str]:
    """Named temporary credentials, in the words of Taskcluster's clients."""
    blank = Certificate(tuple(scopes), start, expiry, secrets.token_urlsafe(33), "", issuer)
    certificate = {"version": 1, "scopes": list(scopes), "start": start, "expiry": expiry, "seed": blank.seed,
                   "signature": sign_certificate(blank, name, key), "issuer": issuer}  # fmt: skip
    return {
        "clientId": name,
        "accessToken": temporary_key(blank, key),
        "certificate": orjson.dumps(certificate).decode(),
    }
