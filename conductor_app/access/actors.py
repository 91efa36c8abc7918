"""Who asks. Every client that is let in may use the whole API."""

from dataclasses import dataclass

from django.http import HttpRequest
from rest_framework.authentication import CSRFCheck

from .. import conf
from ..core.errors import Forbidden, Unauthenticated
from . import origins, tokens


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who asks: an application, a person, or anybody on this machine."""

    name: str


ANYBODY = Actor("anonymous")


def actor_of(request: HttpRequest) -> Actor:
    """Who sent the request; raises Unauthenticated or Forbidden."""
    if conf.api_access == "open":
        origins.refuse_foreign_pages(request)
        return ANYBODY
    if token := request.META.get("HTTP_X_AUTHORIZATION"):
        return Actor(tokens.holder(token))
    return _signed_in(request)


def _signed_in(request: HttpRequest) -> Actor:
    """An administrator in a browser, with the guard against other sites' forms."""
    user = getattr(request, "user", None)
    if user is None or not (user.is_active and user.is_staff):
        raise Unauthenticated("A token is needed in the header X-Authorization.", code="INVALID_TOKEN")
    check = CSRFCheck(lambda request: None)
    check.process_request(request)
    if reason := check.process_view(request, None, (), {}):
        raise Forbidden(f"CSRF Failed: {reason}")
    return Actor(user.get_username())
