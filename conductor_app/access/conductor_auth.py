"""Authentication of callers of the Conductor API."""

from dataclasses import dataclass

from django.http import HttpRequest
from rest_framework.authentication import CSRFCheck

from .. import conf
from ..core.errors import Forbidden, Unauthenticated
from . import cross_site, permission_cache, tokens
from .permission_set import ALL_PERMISSIONS, NO_PERMISSIONS, PermissionSet


@dataclass(frozen=True, slots=True)
class Actor:
    """The authenticated caller: an application, a user, or any caller of a server without authentication."""

    name: str
    permissions: PermissionSet = NO_PERMISSIONS
    user_id: int | None = None


OPEN_ACCESS_ACTOR = Actor("anonymous", ALL_PERMISSIONS)


def authenticate(request: HttpRequest, *, changes_state: bool = False) -> Actor:
    """Return the caller of a request.

    `changes_state`: the operation changes something although its method is GET, as in Conductor's API. A browser
    session needs a CSRF token for it, because browsers send cookies when the user follows a link of another site.

    Raises:
        Unauthenticated: when the credentials are missing or invalid
        Forbidden: when a page of another site sends the request.
    """
    if conf.api_access == "open":
        cross_site.reject_cross_site_requests(request)
        return OPEN_ACCESS_ACTOR
    if token := request.META.get("HTTP_X_AUTHORIZATION"):
        return authenticate_token(token)
    return _authenticate_session(request, changes_state=changes_state)


def authenticate_token(token: str) -> Actor:
    """Return the application of a token.

    Raises:
        Unauthenticated: when the token or its key is invalid.
    """
    holder = permission_cache.find_key_holder(tokens.verify_token(token))
    if holder is None:
        raise Unauthenticated("The key of this token is no longer valid.", code="INVALID_TOKEN")
    return Actor(holder.name, permission_cache.permission_set_of(holder.user_id), holder.user_id)


def _authenticate_session(request: HttpRequest, *, changes_state: bool) -> Actor:
    """Return the user of a browser session, with CSRF protection.

    Raises:
        Unauthenticated: when no user is signed in
        Forbidden: when the CSRF check fails.
    """
    user = getattr(request, "user", None)
    if user is None or not (user.is_active and user.is_staff):
        raise Unauthenticated("The header X-Authorization with a token is required.", code="INVALID_TOKEN")
    cross_site.reject_cross_site_requests(request)
    _require_csrf_token(request, is_required=changes_state)
    return Actor(user.get_username(), permission_cache.permission_set_of(user.pk), user.pk)


def _require_csrf_token(request: HttpRequest, *, is_required: bool) -> None:
    """Check the CSRF token of a request. `is_required`: check it for GET as well.

    Raises:
        Forbidden: when the token is missing or wrong.
    """
    check = CSRFCheck(lambda request: None)
    check.process_request(request)
    method = request.method
    try:
        if is_required:
            request.method = "POST"
        reason = check.process_view(request, None, (), {})
    finally:
        request.method = method
    if reason:
        raise Forbidden(f"CSRF Failed: {reason}")
