"""Sign-in with an OpenID Connect provider: authorization code flow with PKCE."""

import logging
from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from ...core.errors import Forbidden
from ...settings import conf
from ..authentication import client_address
from ..tokens import OPENID_BACKEND
from .commands import ExternalUser, find_or_create_external_user, record_sign_in
from .pages import after_sign_in, next_address, refuse_sign_in

NEXT = "sign_in_next"

logger = logging.getLogger(__name__)


class OpenIdBackend(ModelBackend):
    """Marks sessions of users that the provider has authenticated. Passwords are not accepted."""

    def authenticate(self, request: HttpRequest | None, *_: object, **__: object) -> None:
        """Accept no password."""
        return


def start(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the sign-in page of the provider."""
    from . import openid_provider

    request.session[NEXT] = next_address(request)
    try:
        return openid_provider.redirect_to_provider(request, _callback_address(request))
    except openid_provider.ProviderFailed as error:
        return _refuse(request, _("The sign-in server does not respond. Try again in a minute."), error)


def callback(request: HttpRequest) -> HttpResponse:
    """Sign in the user with the code that the provider sent."""
    from . import openid_provider

    try:
        claims = openid_provider.fetch_claims(request)
    except openid_provider.ProviderFailed as error:
        return _refuse(request, _("The sign-in was cancelled, has expired, or was not valid. Sign in again."), error)
    if "sub" not in claims:
        return _refuse(request, _("The sign-in server returned no user."), None)
    try:
        user = find_or_create_external_user(conf.oidc_issuer, str(claims["sub"])[:255], _external_user(claims))
    except Forbidden as error:
        return _refuse(request, error.message, error)
    return _sign_in(request, user)


def _sign_in(request: HttpRequest, user: User) -> HttpResponse:
    target = request.session.pop(NEXT, "") or reverse("admin:index")
    login(request, user, backend=OPENID_BACKEND)
    return after_sign_in(request, target)


def _external_user(claims: dict[str, Any]) -> ExternalUser:
    groups = claims.get(conf.oidc_groups_claim) or ()
    return ExternalUser(
        username=str(claims.get(conf.oidc_username_claim) or ""),
        email=str(claims.get("email") or "") if claims.get("email_verified", True) else "",
        first_name=str(claims.get("given_name") or claims.get("name") or ""),
        last_name=str(claims.get("family_name") or ""),
        groups=tuple(map(str, [groups] if isinstance(groups, str) else groups)),
    )


def _callback_address(request: HttpRequest) -> str:
    path = reverse("admin:openid_callback")
    return (
        f"{conf.public_url}{path.removeprefix(settings.FORCE_SCRIPT_NAME or '')}"
        if conf.public_url
        else request.build_absolute_uri(path)
    )


def _refuse(request: HttpRequest, message: str, error: Exception | None) -> HttpResponse:
    # The text of the error can contain parts of the request of an anonymous client.
    reason = str(error or message)[:300]
    logger.warning("OpenID Connect sign-in refused: %s", reason)
    record_sign_in("", "fail to sign in", client_address(request), reason="OpenID Connect: " + reason)
    return refuse_sign_in(request, message)
