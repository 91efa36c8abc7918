"""Temporary credentials: a certificate, signed with its issuer's key, grants scopes for a limited time.

The key of the credentials is derived from the issuer's key and the certificate's seed, so nothing is stored
(taskcluster §6.3).
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
    """The certified scopes and their period of validity. Named credentials contain their issuer."""

    scopes: tuple[str, ...]
    start: int
    expiry: int
    seed: str
    signature: str
    issuer: str | None


def read_ext(text: str) -> tuple[Certificate | None, tuple[str, ...] | None]:
    """Return the certificate and the authorized scopes in a signature.

    Raises:
        Unauthenticated: when they are invalid.
    """
    if not text:
        return None, None
    try:
        document = json.loads(hawk.decode_base64(text))
    except (ValueError, RecursionError):
        raise Unauthenticated("Invalid ext in the signature.") from None
    if not isinstance(document, dict):
        raise Unauthenticated("The ext of the signature must be an object.")
    certificate, authorized = document.get("certificate"), document.get("authorizedScopes")
    return (
        None if certificate is None else _parse_certificate(certificate),
        None if authorized is None else _parse_scopes(authorized, "authorizedScopes"),
    )


def _parse_certificate(document: Any) -> Certificate:
    if not isinstance(document, dict) or set(document) - {"issuer"} != CERTIFICATE_KEYS or document["version"] != 1:
        raise Unauthenticated("The certificate must be complete and have version 1.")
    start, expiry, seed, signature = document["start"], document["expiry"], document["seed"], document["signature"]
    if not all(type(time) is int and 0 <= time < 2**53 for time in (start, expiry)):
        raise Unauthenticated("The certificate must have a start and an expiry.")
    if not isinstance(seed, str) or not SEED_PATTERN.match(seed) or not isinstance(signature, str):
        raise Unauthenticated("Invalid seed or signature of the certificate.")
    if "issuer" in document and not (isinstance(document["issuer"], str) and document["issuer"]):
        raise Unauthenticated("The issuer of the certificate is not a client.")
    scopes = _parse_scopes(document["scopes"], "scopes of the certificate")
    return Certificate(scopes, start, expiry, seed, signature, document.get("issuer"))


def _parse_scopes(document: Any, label: str) -> tuple[str, ...]:
    if not isinstance(document, list) or not all(
        isinstance(scope, str) and SCOPE_PATTERN.match(scope) for scope in document
    ):
        raise Unauthenticated(f"The {label} must be a list of scopes.")
    return tuple(document)


def verify_certificate(certificate: Certificate, client_id: str, keys: Sequence[str], now: int) -> str:
    """Return the issuer's key that has signed the certificate for this client, which must be valid now.

    Raises:
        Unauthenticated: when the certificate is not valid; the message says why.
    """
    if certificate.start > now + MAX_SKEW_MS:
        raise Unauthenticated("The certificate is not valid yet.")
    if certificate.expiry < now - MAX_SKEW_MS:
        raise Unauthenticated("The certificate has expired.")
    if certificate.expiry - certificate.start > MAX_VALIDITY_MS:
        raise Unauthenticated("The certificate must be valid for at most 31 days.")
    if certificate.issuer == client_id:
        raise Unauthenticated("The issuer of the certificate must not be its holder.")
    for key in keys:
        if hawk.constant_time_equal(sign_certificate(certificate, client_id, key), certificate.signature):
            return key
    raise Unauthenticated("The certificate is not signed by its issuer.")


def sign_certificate(certificate: Certificate, client_id: str, key: str) -> str:
    """Return the signature of a certificate with an issuer's key."""
    issuer_lines = [f"clientId:{client_id}", f"issuer:{certificate.issuer}"] if certificate.issuer else []
    lines = ["version:1", *issuer_lines, f"seed:{certificate.seed}", f"start:{certificate.start}",
             f"expiry:{certificate.expiry}", "scopes:", *certificate.scopes]  # fmt: skip
    return base64.b64encode(hawk.hmac_sha256(key, "\n".join(lines))).decode()


def temporary_key(certificate: Certificate, key: str) -> str:
    """Return the access token that belongs to a certificate."""
    return base64.urlsafe_b64encode(hawk.hmac_sha256(key, certificate.seed)).decode().rstrip("=")


def issue_credentials(
    issuer: str, key: str, name: str, scopes: Sequence[str], *, start: int, expiry: int
) -> Mapping[str, str]:
    """Return named temporary credentials in the format of Taskcluster's clients."""
    blank = Certificate(tuple(scopes), start, expiry, secrets.token_urlsafe(33), "", issuer)
    certificate = {"version": 1, "scopes": list(scopes), "start": start, "expiry": expiry, "seed": blank.seed,
                   "signature": sign_certificate(blank, name, key), "issuer": issuer}  # fmt: skip
    return {
        "clientId": name,
        "accessToken": temporary_key(blank, key),
        "certificate": orjson.dumps(certificate).decode(),
    }
