"""The content security policy: pages load only files of this server and run no inline scripts."""

import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

STRICT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
# The OpenAPI page is a third-party library that starts from an inline script.
RELAXED_POLICY = STRICT_POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
RELAXED_PATHS = ("/api/docs",)


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Add the policy to every response that does not have one (middleware)."""

    def handle_request(request: HttpRequest) -> HttpResponse:
        nonces: list[str] = []

        def create_nonce() -> str:
            nonces.append(secrets.token_urlsafe(16))
            return nonces[-1]

        request.csp_nonce = SimpleLazyObject(create_nonce)  # type: ignore[attr-defined]
        response = get_response(request)
        policy = policy_for(request.path_info)
        if nonces:
            # The page has read the nonce: it has a script that inserts styles, and those styles carry the nonce.
            policy = policy.replace("style-src 'self'", f"style-src 'self' 'nonce-{nonces[0]}'")
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return handle_request


def policy_for(path: str) -> str:
    """Return the policy for a path."""
    return RELAXED_POLICY if path.rstrip("/") in RELAXED_PATHS else STRICT_POLICY
