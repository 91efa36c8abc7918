"""The pages of sign-in and of the second factor, and the part of a user's page about them."""

from functools import partial
from typing import Any, cast

import pyotp
import segno
from django.contrib import messages
from django.contrib.admin import display
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import authenticate, get_user_model, login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, PasswordResetConfirmView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.middleware.csrf import rotate_token
from django.template.response import TemplateResponse
from django.urls import reverse, reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Conflict
from ...settings import conf
from ...settings import table as conf_table
from ...utils import clock
from ...web.pages import Page, render_to_string, show_refusal
from ..models import ExternalIdentity
from ..tokens import EXPIRED, end_other_sessions, is_single_sign_on
from .commands import (
    VALID_DAYS,
    accept_invitation,
    has_second_factor,
    invitation_tokens,
    may_be_linked,
    new_sealed_key,
    permit_link,
    record_sign_in,
    remove_second_factor,
    turn_on,
    unseal_key,
    verify_code,
)
from .throttle import is_account_locked, is_locked_out, reset_failures, verifications, verify_code_of

ISSUER, KEY = "Conductor", "second_factor_key"
PENDING = "sign_in_pending"
PENDING_MS = 5 * 60_000
WAIT_SECONDS = 10.0


class SecondFactorPage(Page):
    """Setup and removal of the user's own second factor. Users of single sign-on have none here."""

    name, title, template = (
        "second-factor",
        gettext_lazy("Two-step sign-in"),
        "ops/access/sign_in/second_factor_setup.html",
    )

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
            request, "ops/access/sign_in/recovery_codes.html", context, headers={"Cache-Control": "no-store"}
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


class SignInView(LoginView):
    """Asks for the name and password, and then for the second factor of users who have one."""

    template_name = "admin/login.html"
    authentication_form = AdminAuthenticationForm
    redirect_authenticated_user = False

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | sign_in_options(self.request)

    def get_default_redirect_url(self) -> str:
        return reverse("admin:index")

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Verify the password, at most a few at the same time."""
        if not conf.local_sign_in:
            return refuse_sign_in(request, _("Sign in with single sign-on. Passwords are disabled."))
        if not verifications.acquire(timeout=WAIT_SECONDS):
            return _too_many(request)
        try:
            return super().post(request, *args, **kwargs)
        finally:
            verifications.release()

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        return sign_in_verified(self.request, form.get_user(), self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        if is_locked_out(self.request):
            return _too_many(self.request)
        return super().form_invalid(form)


def sign_in_verified(request: HttpRequest, user: Any, target: str) -> HttpResponse:
    """Sign in a user whose password was verified, or ask for the second factor first."""
    has_factor = has_second_factor(user)
    if not has_factor and not conf.second_factor_required:
        login(request, user)
        return after_sign_in(request, target)
    request.session.pop(KEY, None)
    # As `login` does: who knows the key and the token of the earlier session gets no part in this sign-in.
    request.session.cycle_key()
    rotate_token(request)
    request.session[PENDING] = {
        "user": user.pk,
        "backend": user.backend,
        "hash": user.get_session_auth_hash(),
        "at": clock.now(),
        "next": target,
    }
    return HttpResponseRedirect(reverse("admin:sign_in_code" if has_factor else "admin:sign_in_setup"))


def second_factor(request: HttpRequest) -> HttpResponse:
    """Ask for the code of the authenticator app, and sign in."""
    user = _pending_user(request)
    if user is None:
        return _restart(request)
    if request.method != "POST":
        return _code_page(request)
    if not verify_code_of(request, user, lambda code: verify_code(user, code)):
        return _too_many(request) if is_locked_out(request) else _code_page(request, is_wrong=True)
    return _finish(request, user)


def second_factor_required(request: HttpRequest) -> HttpResponse:
    """Let a user who must have a second factor set it up, and sign in."""
    user = _pending_user(request)
    if user is None or has_second_factor(user):
        return _restart(request)
    if request.method != "POST":
        return _setup_page(request, user)
    codes: list[str] = []

    def confirm(code: str) -> bool:
        codes[:] = finish_setup(request, user, code)
        return bool(codes)

    if not verify_code_of(request, user, confirm):
        return _too_many(request) if is_locked_out(request) else _setup_page(request, user, is_wrong=True)
    target = request.session[PENDING]["next"]
    _finish(request, user)
    end_other_sessions(user, request.session.session_key)
    return TemplateResponse(
        request,
        "ops/access/sign_in/recovery_codes.html",
        {"codes": codes, "next": target},
        headers={"Cache-Control": "no-store"},
    )


def _finish(request: HttpRequest, user: User) -> HttpResponse:
    pending = request.session.pop(PENDING)
    login(request, user, backend=pending["backend"])
    return after_sign_in(request, pending["next"])


def _pending_user(request: HttpRequest) -> User | None:
    """Return the user whose password was verified a short time ago, and has not changed since."""
    pending = request.session.get(PENDING)
    if not pending or not 0 <= clock.now() - pending["at"] < PENDING_MS:
        return None
    user = get_user_model().objects.filter(pk=pending["user"], is_active=True).first()
    return user if user is not None and user.get_session_auth_hash() == pending["hash"] else None


def _restart(request: HttpRequest) -> HttpResponse:
    request.session.pop(PENDING, None)
    return HttpResponseRedirect(reverse("admin:login"))


def _code_page(request: HttpRequest, *, is_wrong: bool = False) -> HttpResponse:
    return TemplateResponse(request, "ops/access/sign_in/second_factor.html", {"is_wrong": is_wrong})


def _setup_page(request: HttpRequest, user: User, *, is_wrong: bool = False) -> HttpResponse:
    context = setup_context(request, user) | {"is_wrong": is_wrong}
    return TemplateResponse(
        request, "ops/access/sign_in/second_factor_required.html", context, headers={"Cache-Control": "no-store"}
    )


def _too_many(request: HttpRequest) -> HttpResponse:
    minutes = conf.sign_in_lock_minutes
    message = _("Too many failed sign-ins. Try again in %(minutes)s minutes.") % {"minutes": minutes}
    response = refuse_sign_in(request, message, status=429)
    response.headers["Retry-After"] = str(minutes * 60)
    return response


def refuse_sign_in(request: HttpRequest, message: str, status: int = 403) -> HttpResponse:
    """Return the sign-in page with an error."""
    context = {
        "form": AdminAuthenticationForm(request),
        "refused": message,
        "next": next_address(request),
        "title": _("Sign in"),
    }
    return TemplateResponse(request, "admin/login.html", context | sign_in_options(request), status=status)


def sign_in_options(request: HttpRequest) -> dict[str, Any]:
    """Return the context with the available ways to sign in."""
    return {
        "environment": (conf.environment_name, conf_table.COLORS[conf.environment_color]),
        "app_path": reverse("admin:login"),
        "has_passwords": conf.local_sign_in,
        "has_own_users": conf.is_server,
        "provider_name": conf.oidc_name if conf.oidc_issuer else "",
        "site_title": "Conductor",
        "site_header": "Conductor",
        "has_permission": False,
        "next": next_address(request),
        "has_expired": request.session.pop(EXPIRED, False),
    }


def next_address(request: HttpRequest) -> str:
    """Return the page to open after the sign-in: an address on this server, or ""."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    is_local = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if is_local else ""


def after_sign_in(request: HttpRequest, target: str) -> HttpResponse:
    """Redirect to the page that the user wanted to open."""
    return HttpResponseRedirect(target or reverse("admin:index"))


class InvitationView(PasswordResetConfirmView):
    """Lets an invited person set the first password, and signs the person in."""

    template_name = "ops/access/sign_in/invitation.html"
    token_generator = invitation_tokens
    success_url = reverse_lazy("admin:login")
    reset_url_token = "set-password"

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Refuse links where passwords are disabled."""
        if not conf.local_sign_in:
            return refuse_sign_in(request, _("Sign in with single sign-on. Passwords are disabled."))
        return super().dispatch(request, *args, **kwargs)

    def get_user(self, uidb64: str) -> Any:
        user = super().get_user(uidb64)
        return user if user is not None and user.is_active and may_be_linked(user) else None

    def form_valid(self, form: Any) -> HttpResponse:
        name = form.user.get_username()
        response = accept_invitation(name, partial(super().form_valid, form))
        user = authenticate(self.request, username=name, password=form.cleaned_data["new_password1"])
        if user is None:
            messages.success(self.request, _("Your password is set. Sign in as %(name)s.") % {"name": name})
            return response
        response = sign_in_verified(self.request, user, reverse("admin:index"))
        messages.success(
            self.request, _("Your password is set. Your name for the sign-in is %(name)s.") % {"name": name}
        )
        return response

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | sign_in_options(self.request) | {"days": VALID_DAYS}


class SignInFieldsMixin:
    """Adds the state of a user's sign-in to the user page, with buttons that change it."""

    @display(description=gettext_lazy("sign-in"))
    def sign_in(self, user: User) -> SafeString:
        context = {
            "user_name": user.get_username(),
            "has_second_factor": has_second_factor(user),
            "identities": ExternalIdentity.objects.filter(user=user),
            "may_be_linked": bool(conf.oidc_issuer) and may_be_linked(user),
            "is_locked": is_account_locked(user.get_username()),
        }
        return SafeString(render_to_string("ops/access/sign_in/user_fields.html", context))

    def response_change(self, request: HttpRequest, user: User) -> HttpResponse:
        """Execute the button that was used, after the form was saved."""
        name, actor = user.get_username(), request.user.get_username()
        if "_remove_second_factor" in request.POST:
            remove_second_factor(user, actor)
            end_other_sessions(user, request.session.session_key)
            messages.success(request, _("%(name)s signs in without a second step now.") % {"name": name})
        elif "_unlock" in request.POST:
            reset_failures(name)
            record_sign_in(name, "unlock sign-in", "", by=actor)
            messages.success(request, _("%(name)s can sign in again.") % {"name": name})
        elif "_permit_link" in request.POST:
            try:
                permit_link(user, actor)
                messages.success(request, _("The next single sign-on with this name uses this account."))
            except Conflict as refused:
                show_refusal(request, refused)
        elif "_end_sessions" in request.POST:
            count = end_other_sessions(user, request.session.session_key)
            record_sign_in(name, "end sessions", "", by=actor)
            messages.success(request, _("Ended %(count)s sessions of %(name)s.") % {"count": count, "name": name})
        else:
            response: Any = super().response_change(request, user)  # type: ignore[misc]
            return response
        return HttpResponseRedirect(request.path)
