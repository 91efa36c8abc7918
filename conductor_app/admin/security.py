"""The content security policy: pages load only what this server serves, and run nothing that stands inside them."""

import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject, empty

STRICT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
# The OpenAPI page is drawn by somebody else's code, which starts from a script inside the page.
RELAXED_POLICY = STRICT_POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
RELAXED_PATHS = ("/api/docs",)


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that sends the policy with every answer that does not bring its own."""

    def handle_request(request: HttpRequest) -> HttpResponse:
        request.csp_nonce = SimpleLazyObject(lambda: secrets.token_urlsafe(16))
        response = get_response(request)
        policy = policy_for(request.path)
        if request.csp_nonce._wrapped is not empty:
            # A page that has asked for the nonce brings a script that makes styles: those with it may stay.
            policy = policy.replace("style-src 'self'", f"style-src 'self' 'nonce-{request.csp_nonce}'")
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return handle_request


def policy_for(path: str) -> str:
    """The policy for one address."""
    return RELAXED_POLICY if path.rstrip("/") in RELAXED_PATHS else STRICT_POLICY
