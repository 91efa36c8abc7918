"""Signal handlers that record sign-ins, failures and sign-outs in the audit log, and start sessions."""

from typing import Any

from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from ... import conf
from ...access.client_address import client_address
from ...access.session_limits import OPENID_BACKEND, start_session
from ...engine.access.sign_ins import record_sign_in
from .throttle import is_locked_out

METHODS = {
    "django.contrib.auth.backends.ModelBackend": "Password",
    OPENID_BACKEND: "OpenID Connect",
}


def connect_sign_in_signals() -> None:
    """Connect the handlers."""
    user_logged_in.connect(_on_sign_in, dispatch_uid="audit of sign-ins")
    user_login_failed.connect(_on_failure, dispatch_uid="audit of failed sign-ins")
    user_logged_out.connect(_on_sign_out, dispatch_uid="audit of sign-outs")


def _on_sign_in(request: HttpRequest, user: User, **_: Any) -> None:
    start_session(request)
    method = METHODS.get(request.session[BACKEND_SESSION_KEY], "")
    record_sign_in(user.get_username(), "sign in", client_address(request), reason=method)


def _on_failure(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    is_locked = request is not None and is_locked_out(request)
    if is_locked and getattr(request, "axes_failures_since_start", None) is None:
        # The account was locked before. An entry for each further attempt would fill the audit log.
        return
    reason = f"Locked for {conf.sign_in_lock_minutes} minutes." if is_locked else ""
    address = client_address(request) if request is not None else ""
    record_sign_in(str(credentials.get("username") or "")[:150], "fail to sign in", address, reason=reason)


def _on_sign_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    if user is not None:
        record_sign_in(user.get_username(), "sign out", client_address(request))
