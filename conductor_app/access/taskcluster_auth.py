"""Authentication of callers of the Taskcluster API by a signature in a header or in the URL."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.http.request import split_domain_port

from .. import clock
from ..core.errors import Unauthenticated
from . import clients, cross_site, hawk, temporary_credentials
from .hawk import HawkRequest, HawkSignature
from .permission_set import NO_PATTERNS, NamePatterns
from .scopes import ALL_SCOPES, scope_set

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
    if clients.is_access_open():
        cross_site.reject_cross_site_requests(request)
        return OPEN_ACCESS_CALLER
    caller = identify_caller(signed_request_of(request), request.META.get("HTTP_AUTHORIZATION", ""))
    if caller.signature is not None and caller.signature.hash:
        hawk.verify_payload(caller.signature, request.META.get("CONTENT_TYPE", ""), body())
    return caller


def identify_caller(hawk_request: HawkRequest, authorization: str) -> Caller:
    """Return the caller who signed a request, or the anonymous caller if it is not signed.

    Raises:
        Unauthenticated: when the signature is invalid.
    """
    address = hawk.parse_bewit(hawk_request.resource)
    if authorization and address:
        raise Unauthenticated("The request has two signatures: in the header and in the URL.")
    if authorization:
        return _find_signer(hawk.parse_authorization(authorization), hawk_request)
    if address is None:
        return _build_caller("anonymous", ())
    if hawk_request.method.upper() not in ("GET", "HEAD"):
        raise Unauthenticated("A signed URL allows only reading.")
    signature, stripped_resource = address
    return _find_signer(
        signature, HawkRequest(hawk_request.method, stripped_resource, hawk_request.host, hawk_request.port)
    )


def _find_signer(signature: HawkSignature, hawk_request: HawkRequest) -> Caller:
    certificate, authorized = temporary_credentials.read_ext(signature.ext)
    issuer = (
        clients.find_issuer_key(certificate.issuer)
        if certificate and certificate.issuer
        else clients.find_client_key(signature.id)
    )
    if issuer is None or not CLIENT_ID_PATTERN.fullmatch(signature.id):
        raise Unauthenticated(UNKNOWN_CLIENT)
    key, scopes, expires_at = issuer.key, issuer.scopes, issuer.expires_at
    if certificate is not None:
        issuer_keys = (issuer.key, *issuer.previous_keys)
        issuer_key = temporary_credentials.verify_certificate(certificate, signature.id, issuer_keys, clock.now())
        key, scopes = temporary_credentials.temporary_key(certificate, issuer_key), certificate.scopes
        expires_at = min(certificate.expiry, issuer.expires_at)
    hawk.verify_signature(signature, hawk_request, key, clock.now())
    _require_active(issuer)
    if certificate is not None:
        creation_scopes = [f"auth:create-client:{signature.id}"] if certificate.issuer else []
        _require_subset(
            clients.effective_scopes(issuer.scopes).names,
            [*creation_scopes, *scopes],
            "The issuer of the certificate does not hold",
        )
    if authorized is not None:
        _require_subset(clients.effective_scopes(scopes).names, authorized, "The client does not hold the authorized")
        scopes = authorized
    return _build_caller(signature.id, scopes, expires_at, signature, issuer.id)


def _require_active(client: clients.ClientKey) -> None:
    if client.is_disabled:
        raise Unauthenticated(f"The client {client.id} is disabled.")
    if client.expires_at <= clock.now():
        raise Unauthenticated(f"The client {client.id} has expired.")


def _require_subset(names: NamePatterns, required: Iterable[str], validation_error: str) -> None:
    lacking = [scope for scope in required if scope not in names]
    if lacking:
        raise Unauthenticated(f"{validation_error} scopes {', '.join(lacking)[:1000]}.")


def _build_caller(client_id: str, scopes: Sequence[str], *rest: Any) -> Caller:
    effective = clients.effective_scopes(scopes)
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
