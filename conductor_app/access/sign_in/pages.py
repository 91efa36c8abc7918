"""The sign-in pages: password, second factor, and the setup of a second factor."""

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import get_user_model, login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from ... import clock, conf
from ...access.session_limits import EXPIRED, end_other_sessions
from ...engine.access.second_factors import has_second_factor, verify_code
from .second_factor_setup import KEY, finish_setup, setup_context
from .throttle import is_locked_out, verifications, verify_code_of

PENDING = "sign_in_pending"
PENDING_MS = 5 * 60_000
WAIT_SECONDS = 10.0


class SignInView(LoginView):
    """Asks for the name and password, and then for the second factor of users who have one."""

    template_name = "admin/login.html"
    authentication_form = AdminAuthenticationForm
    redirect_authenticated_user = False

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | sign_in_options(self.request)

    def get_default_redirect_url(self) -> str:
        return reverse("admin:index")

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
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
        user = form.get_user()
        has_factor = has_second_factor(user)
        if not has_factor and not conf.second_factor_required:
            login(self.request, user)
            return after_sign_in(self.request, self.get_success_url())
        self.request.session.pop(KEY, None)
        self.request.session[PENDING] = {
            "user": user.pk,
            "backend": user.backend,
            "hash": user.get_session_auth_hash(),
            "at": clock.now(),
            "next": self.get_success_url(),
        }
        return HttpResponseRedirect(reverse("admin:sign_in_code" if has_factor else "admin:sign_in_setup"))

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        if is_locked_out(self.request):
            return _too_many(self.request)
        return super().form_invalid(form)


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
        "ops/sign_in/recovery_codes.html",
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
    return TemplateResponse(request, "ops/sign_in/second_factor.html", {"is_wrong": is_wrong})


def _setup_page(request: HttpRequest, user: User, *, is_wrong: bool = False) -> HttpResponse:
    context = setup_context(request, user) | {"is_wrong": is_wrong}
    return TemplateResponse(
        request, "ops/sign_in/second_factor_required.html", context, headers={"Cache-Control": "no-store"}
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
        "environment": (conf.environment_name, conf.COLORS[conf.environment_color]),
        "app_path": reverse("admin:login"),
        "has_passwords": conf.local_sign_in,
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
