"""The page on which users set up or remove their second factor."""

from typing import Any, cast

import pyotp
import segno
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import conf
from ...access.session_limits import end_other_sessions, is_single_sign_on
from ...engine.access.second_factors import (
    has_second_factor,
    new_sealed_key,
    remove_second_factor,
    turn_on,
    unseal_key,
    verify_code,
)
from ..pages import Page
from .throttle import is_locked_out, verify_code_of

ISSUER, KEY = "Conductor", "second_factor_key"


class SecondFactorPage(Page):
    """Setup and removal of the user's own second factor. Users of single sign-on have none here."""

    name, title, template = "second-factor", gettext_lazy("Two-step sign-in"), "ops/sign_in/second_factor_setup.html"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_active and not is_single_sign_on(request)

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        if has_second_factor(_user_of(request)):
            return {"is_on": True, "is_required": conf.second_factor_required}
        return setup_context(request, _user_of(request))

    def post(self, request: HttpRequest) -> HttpResponse:
        if "remove" in request.POST:
            self._remove(request)
            return HttpResponseRedirect(reverse("admin:second-factor"))
        codes = finish_setup(request, _user_of(request), request.POST.get("code", "")[:100].strip())
        if not codes:
            messages.error(request, wrong_code_text(request))
            return HttpResponseRedirect(reverse("admin:second-factor"))
        end_other_sessions(_user_of(request), request.session.session_key)
        context = {"codes": codes, "next": reverse("admin:index"), "title": self.title}
        return TemplateResponse(
            request, "ops/sign_in/recovery_codes.html", context, headers={"Cache-Control": "no-store"}
        )

    def _remove(self, request: HttpRequest) -> None:
        if conf.second_factor_required:
            raise PermissionDenied
        user = _user_of(request)
        if verify_code_of(request, user, lambda code: verify_code(user, code)):
            remove_second_factor(user, user.get_username())
            messages.success(request, _("Two-step sign-in is off."))
        else:
            messages.error(request, wrong_code_text(request))


def _user_of(request: HttpRequest) -> User:
    return cast(User, request.user)


def wrong_code_text(request: HttpRequest) -> str:
    """Return the error for a code that was not accepted."""
    if is_locked_out(request):
        return _("Too many wrong codes. Try again in %(minutes)s minutes.") % {"minutes": conf.sign_in_lock_minutes}
    return _("The code is wrong. Enter the current code of the app.")


def setup_context(request: HttpRequest, user: User) -> dict[str, Any]:
    """Return the context of the setup: the key, and a QR code for an authenticator app.

    The key is in the session until a code confirms it.
    """
    if KEY not in request.session:
        request.session[KEY] = new_sealed_key(user)
    key = unseal_key(user, request.session[KEY])
    address = pyotp.TOTP(key).provisioning_uri(name=user.get_username(), issuer_name=conf.environment_name or ISSUER)
    picture = segno.make(address, error="m").svg_data_uri(scale=5, border=3, light="#fff", dark="#000")
    return {"key": " ".join(key[i : i + 4] for i in range(0, len(key), 4)), "picture": picture}


def finish_setup(request: HttpRequest, user: User, code: str) -> list[str]:
    """Turn the second factor on. Returns the recovery codes, or an empty list if the code is wrong."""
    codes = turn_on(user, request.session[KEY], code) if KEY in request.session else None
    if codes:
        del request.session[KEY]
    return codes or []
