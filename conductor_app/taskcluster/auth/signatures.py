"""Authentication by signatures and temporary credentials.

Hawk signs requests with a shared key, in a header or in the URL (taskcluster §6.1, §6.4). The signature covers the URL
byte for byte as the client sent it; a decoded URL cannot be verified.

Temporary credentials are a certificate, signed with its issuer's key, that grants scopes for a limited time. Their key
is derived from the issuer's key and the certificate's seed, so nothing is stored (taskcluster §6.3).
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.http import HttpRequest
from django.http.request import split_domain_port

from ...access import authentication
from ...access.permissions import NO_PATTERNS, NamePatterns
from ...core.errors import Unauthenticated
from ...core.primitives import JsonValue
from ...utils import clock
from .scopes import (
    ALL_SCOPES,
    SCOPE_PATTERN,
    ClientKey,
    effective_scopes,
    find_client_key,
    find_issuer_key,
    is_access_open,
    scope_set,
)

MAX_SKEW_SECONDS = 15 * 60
HEADER, BEWIT, PAYLOAD = "hawk.1.header", "hawk.1.bewit", "hawk.1.payload"
ATTRIBUTE_PATTERN = re.compile(r'\s*([a-z]+)="([ !#-\[\]-~]*)"\s*(?:,|\Z)')
KNOWN_ATTRIBUTES = {"id", "ts", "nonce", "hash", "ext", "mac", "app", "dlg"}
REQUIRED_ATTRIBUTES = ("id", "ts", "nonce", "mac")
BEWIT_PATTERN = re.compile(r"(.*)([?&])bewit=([^&]*)(?:&(.+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HawkRequest:
    """The signed parts of a request: method, raw target, and the host and port that the client connected to."""

    method: str
    resource: str
    host: str
    port: str


@dataclass(frozen=True, slots=True)
class HawkSignature:
    """The parts of a signature. `hash`, of the payload, and `ext` may be empty."""

    kind: str
    id: str
    ts: str
    nonce: str
    hash: str
    ext: str
    mac: str


def parse_authorization(text: str) -> HawkSignature:
    """Return the signature in an Authorization header."""
    scheme, _, rest = text.partition(" ")
    if scheme.lower() != "hawk":
        raise Unauthenticated("The Authorization header must use Hawk.")
    attributes: dict[str, str] = {}
    position = 0
    while position < len(rest):
        match = ATTRIBUTE_PATTERN.match(rest, position)
        if match is None or match[1] not in KNOWN_ATTRIBUTES or match[1] in attributes:
            raise Unauthenticated("Invalid Authorization header.")
        attributes[match[1]] = match[2]
        position = match.end()
    if not all(attributes.get(name) for name in REQUIRED_ATTRIBUTES):
        raise Unauthenticated("The Authorization header is incomplete.")
    # `app` and `dlg` would be part of the signed text, but Taskcluster's clients do not send them.
    return HawkSignature(
        HEADER,
        attributes["id"],
        attributes["ts"],
        attributes["nonce"],
        attributes.get("hash", ""),
        attributes.get("ext", ""),
        attributes["mac"],
    )


def parse_bewit(resource: str) -> tuple[HawkSignature, str] | None:
    """Return the bewit of a URL and the URL without it, or None if the URL has no bewit."""
    match = BEWIT_PATTERN.fullmatch(resource)
    if match is None:
        return None
    before, separator, bewit, after = match.groups()
    try:
        id, expires, mac, ext = decode_base64(bewit).decode().split("\\")
    except ValueError:
        raise Unauthenticated("Invalid bewit in the URL.") from None
    # Other parameters keep their order: some clients put the bewit last, others sort the parameters.
    stripped_resource = f"{before}{separator}{after}" if after else before
    return HawkSignature(BEWIT, id, expires, "", "", ext, mac), stripped_resource


def verify_signature(signature: HawkSignature, request: HawkRequest, key: str, now: int) -> None:
    """Verify that the key has signed this request recently."""
    if not constant_time_equal(compute_mac(signature, request, key), signature.mac):
        raise Unauthenticated("The signature of the request is wrong.")
    seconds = _parse_seconds(signature.ts)
    if signature.kind == BEWIT and seconds * 1000 <= now:
        raise Unauthenticated("The signed URL has expired.")
    if signature.kind == HEADER and abs(now / 1000 - seconds) > MAX_SKEW_SECONDS:
        raise Unauthenticated("The signature is too old or too far in the future. Check the clock of the client.")


def verify_payload(signature: HawkSignature, content_type: str, body: bytes) -> None:
    """Verify that the signature covers this body. A signature without a hash is accepted."""
    if signature.hash and not constant_time_equal(payload_hash(content_type, body), signature.hash):
        raise Unauthenticated("The body does not match the signature.")


def compute_mac(signature: HawkSignature, request: HawkRequest, key: str) -> str:
    method = "GET" if signature.kind == BEWIT else request.method.upper()
    lines = (
        signature.kind, signature.ts, signature.nonce, method, request.resource, request.host.lower(), request.port,
        signature.hash, signature.ext,
    )  # fmt: skip
    text = "".join(f"{line}\n" for line in lines)
    return base64.b64encode(hmac_sha256(key, text)).decode()


def payload_hash(content_type: str, body: bytes) -> str:
    """Return the hash that represents a body in a signature."""
    media_type = content_type.partition(";")[0].strip().lower()
    hashed = hashlib.sha256(b"%s\n%s\n%s\n" % (PAYLOAD.encode(), media_type.encode("utf-8", "replace"), body))
    return base64.b64encode(hashed.digest()).decode()


def hmac_sha256(key: str, text: str) -> bytes:
    """Return the HMAC-SHA256 of a text."""
    return hmac.digest(key.encode(), text.encode("utf-8", "surrogatepass"), "sha256")


def constant_time_equal(expected: str, actual: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(expected.encode("utf-8", "surrogatepass"), actual.encode("utf-8", "surrogatepass"))


def decode_base64(text: str) -> bytes:
    """Decode base64 in either alphabet, with or without padding."""
    standard = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _parse_seconds(ts: str) -> int:
    if not (ts.isascii() and ts.isdigit() and len(ts) <= 15):
        raise Unauthenticated("The time of the signature must be a number of seconds.")
    return int(ts)


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
    """Return the certificate and the authorized scopes in a signature."""
    if not text:
        return None, None
    try:
        document = json.loads(decode_base64(text))
    except (ValueError, RecursionError):
        raise Unauthenticated("Invalid ext in the signature.") from None
    if not isinstance(document, dict):
        raise Unauthenticated("The ext of the signature must be an object.")
    certificate, authorized = document.get("certificate"), document.get("authorizedScopes")
    return (
        None if certificate is None else _parse_certificate(certificate),
        None if authorized is None else _parse_scopes(authorized, "authorizedScopes"),
    )


def _parse_certificate(document: JsonValue) -> Certificate:
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


def _parse_scopes(document: JsonValue, label: str) -> tuple[str, ...]:
    if not isinstance(document, list) or not all(
        isinstance(scope, str) and SCOPE_PATTERN.match(scope) for scope in document
    ):
        raise Unauthenticated(f"The {label} must be a list of scopes.")
    return tuple(document)


def verify_certificate(certificate: Certificate, client_id: str, keys: Sequence[str], now: int) -> str:
    """Return the issuer's key that has signed the certificate for this client, which must be valid now."""
    if certificate.start > now + MAX_SKEW_MS:
        raise Unauthenticated("The certificate is not valid yet.")
    if certificate.expiry < now - MAX_SKEW_MS:
        raise Unauthenticated("The certificate has expired.")
    if certificate.expiry - certificate.start > MAX_VALIDITY_MS:
        raise Unauthenticated("The certificate must be valid for at most 31 days.")
    if certificate.issuer == client_id:
        raise Unauthenticated("The issuer of the certificate must not be its holder.")
    for key in keys:
        if constant_time_equal(sign_certificate(certificate, client_id, key), certificate.signature):
            return key
    raise Unauthenticated("The certificate is not signed by its issuer.")


def sign_certificate(certificate: Certificate, client_id: str, key: str) -> str:
    """Return the signature of a certificate with an issuer's key."""
    issuer_lines = [f"clientId:{client_id}", f"issuer:{certificate.issuer}"] if certificate.issuer else []
    lines = [
        "version:1", *issuer_lines, f"seed:{certificate.seed}", f"start:{certificate.start}",
        f"expiry:{certificate.expiry}", "scopes:", *certificate.scopes,
    ]  # fmt: skip
    return base64.b64encode(hmac_sha256(key, "\n".join(lines))).decode()


def temporary_key(certificate: Certificate, key: str) -> str:
    """Return the access token that belongs to a certificate."""
    return base64.urlsafe_b64encode(hmac_sha256(key, certificate.seed)).decode().rstrip("=")


def issue_credentials(
    issuer: str, key: str, name: str, scopes: Sequence[str], *, start: int, expiry: int
) -> Mapping[str, str]:
    """Return named temporary credentials in the format of Taskcluster's clients."""
    blank = Certificate(tuple(scopes), start, expiry, secrets.token_urlsafe(33), "", issuer)
    certificate = {
        "version": 1, "scopes": list(scopes), "start": start, "expiry": expiry, "seed": blank.seed,
        "signature": sign_certificate(blank, name, key), "issuer": issuer,
    }  # fmt: skip
    return {
        "clientId": name,
        "accessToken": temporary_key(blank, key),
        "certificate": orjson.dumps(certificate).decode(),
    }


CLIENT_ID_PATTERN = re.compile(r"[A-Za-z0-9!@/:.+|_-]+")
UNKNOWN_CLIENT = "Unknown client, or wrong access token."
DEFAULT_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller: client id, expanded scopes, and their expiry.

    `signing_client_id`: the client whose key has signed the request or the certificate.
    """

    client_id: str
    scopes: NamePatterns = NO_PATTERNS
    scope_list: tuple[str, ...] = ()
    expires_at: int | None = None
    signature: HawkSignature | None = None
    signing_client_id: str = ""


OPEN_ACCESS_CALLER = Caller("anonymous", scope_set([ALL_SCOPES]), (ALL_SCOPES,))
"""The caller of a server without authentication."""


def authenticate(request: HttpRequest, body: Callable[[], bytes]) -> Caller:
    """Return the caller of a request. `body`: reads its body.

    Raises:
        Unauthenticated: when the signature is invalid
        Forbidden: when a page of another site sends the request.
    """
    if is_access_open():
        authentication.reject_cross_site_requests(request)
        return OPEN_ACCESS_CALLER
    caller = identify_caller(signed_request_of(request), request.META.get("HTTP_AUTHORIZATION", ""))
    if caller.signature is not None and caller.signature.hash:
        verify_payload(caller.signature, request.META.get("CONTENT_TYPE", ""), body())
    return caller


def identify_caller(hawk_request: HawkRequest, authorization: str) -> Caller:
    """Return the caller who signed a request, or the anonymous caller if it is not signed."""
    address = parse_bewit(hawk_request.resource)
    if authorization and address:
        raise Unauthenticated("The request has two signatures: in the header and in the URL.")
    if authorization:
        return _find_signer(parse_authorization(authorization), hawk_request)
    if address is None:
        return _build_caller("anonymous", ())
    if hawk_request.method.upper() not in ("GET", "HEAD"):
        raise Unauthenticated("A signed URL allows only reading.")
    signature, stripped_resource = address
    return _find_signer(
        signature, HawkRequest(hawk_request.method, stripped_resource, hawk_request.host, hawk_request.port)
    )


def _find_signer(signature: HawkSignature, hawk_request: HawkRequest) -> Caller:
    certificate, authorized = read_ext(signature.ext)
    issuer = (
        find_issuer_key(certificate.issuer) if certificate and certificate.issuer else find_client_key(signature.id)
    )
    if issuer is None or not CLIENT_ID_PATTERN.fullmatch(signature.id):
        raise Unauthenticated(UNKNOWN_CLIENT)
    key, scopes, expires_at = issuer.key, issuer.scopes, issuer.expires_at
    if certificate is not None:
        issuer_keys = (issuer.key, *issuer.previous_keys)
        issuer_key = verify_certificate(certificate, signature.id, issuer_keys, clock.now())
        key, scopes = temporary_key(certificate, issuer_key), certificate.scopes
        expires_at = min(certificate.expiry, issuer.expires_at)
    verify_signature(signature, hawk_request, key, clock.now())
    _require_active(issuer)
    if certificate is not None:
        creation_scopes = [f"auth:create-client:{signature.id}"] if certificate.issuer else []
        _require_subset(
            effective_scopes(issuer.scopes).names,
            [*creation_scopes, *scopes],
            "The issuer of the certificate does not hold",
        )
    if authorized is not None:
        _require_subset(effective_scopes(scopes).names, authorized, "The client does not hold the authorized")
        scopes = authorized
    return _build_caller(signature.id, scopes, expires_at, signature, issuer.id)


def _require_active(client: ClientKey) -> None:
    if client.is_disabled:
        raise Unauthenticated(f"The client {client.id} is disabled.")
    if client.expires_at <= clock.now():
        raise Unauthenticated(f"The client {client.id} has expired.")


def _require_subset(names: NamePatterns, required: Iterable[str], validation_error: str) -> None:
    lacking = [scope for scope in required if scope not in names]
    if lacking:
        raise Unauthenticated(f"{validation_error} scopes {', '.join(lacking)[:1000]}.")


def _build_caller(client_id: str, scopes: Sequence[str], *rest: Any) -> Caller:
    effective = effective_scopes(scopes)
    return Caller(client_id, effective.names, effective.scope_list, *rest)


def signed_request_of(request: HttpRequest) -> HawkRequest:
    """Return the request as its client has signed it, before any proxy and before decoding."""
    host, port = split_domain_port(request.get_host())
    return HawkRequest(str(request.method), raw_target(request), host.strip("[]"), _client_port(request, port))


def raw_target(request: HttpRequest) -> str:
    """Return the request target byte for byte, or re-encoded if the server does not pass it, like Django's own."""
    meta, scope = request.META, getattr(request, "scope", {})
    if "raw_path" in scope:
        query = scope.get("query_string", b"").decode("latin-1")
        return scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
    return meta.get("RAW_URI") or meta.get("REQUEST_URI") or request.get_full_path()


def _client_port(request: HttpRequest, host_port: str) -> str:
    """Return the port that the client has connected to, from a proxy's header, the host name, or the scheme."""
    forwarded = request.META.get("HTTP_X_FORWARDED_PORT", "").split(",")[0].strip()
    if forwarded.isascii() and forwarded.isdigit():
        return forwarded
    if host_port:
        return host_port
    scheme = request.META.get("HTTP_X_FORWARDED_PROTO", "").split(",")[0].strip().lower()
    return DEFAULT_PORTS.get(scheme) or DEFAULT_PORTS["https" if request.is_secure() else "http"]
