"""The content security policy: pages load only what this server serves, and run nothing that stands inside them."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

STRICT = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
# The OpenAPI page is drawn by somebody else's code, which starts from a script inside the page.
EASIER = STRICT.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
EASIER_FOR = ("/api/docs",)


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that sends the policy with every answer that does not bring its own."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", policy_of(request.path))
        return response

    return answer


def policy_of(path: str) -> str:
    """The policy for one address."""
    return EASIER if path.rstrip("/") in EASIER_FOR else STRICT
