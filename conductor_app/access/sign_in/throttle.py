"""Limits of failed sign-ins per account and address (django-axes), and audit entries of sign-ins and sign-outs."""

from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_address, ip_network
from threading import BoundedSemaphore
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone

from ...settings import conf
from ..authentication import client_address
from ..tokens import OPENID_BACKEND, start_session
from .commands import record_sign_in

ACCOUNT_FACTOR, ADDRESS_FACTOR = 4, 10
"""The multiples of `sign_in_attempts` that lock an account for all addresses, and an address for all accounts."""
MAX_PARALLEL = 4

verifications = BoundedSemaphore(MAX_PARALLEL)
"""Limits the passwords that a process verifies at the same time: each takes CPU time, and parallel guesses would all
pass the check of earlier failures."""
METHODS = {
    "django.contrib.auth.backends.ModelBackend": "Password",
    OPENID_BACKEND: "OpenID Connect",
}


class SignInThrottle(AxesDatabaseHandler):
    """Counts failures of the last `sign_in_lock_minutes` and refuses further attempts above a limit.

    Requests from an unknown address share no limit, except that of the account.
    """

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return the number of failures in relation to the limit of an account and address."""
        pair, account, address = (
            attempts.aggregate(total=Sum("failures_since_start"))["total"] or 0
            for attempts in self.get_user_attempts(request, credentials)
        )
        by_address = address // ADDRESS_FACTOR if client_address(request) else 0
        return max(pair, account // ACCOUNT_FACTOR, by_address)

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Delete the failures of the account at this address only.

        Otherwise an attacker with an account could sign in to reset the count of an address.
        """
        pair = self.filter_user_attempts(request, credentials)[0]
        count: int = pair.delete()[0]
        return count


def failure_limit(request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
    """Return the number of failures of an account at an address that lock it."""
    return conf.sign_in_attempts


def lock_time(request: HttpRequest | None = None) -> timedelta:
    """Return how long failures count, and so for how long an account stays locked."""
    return timedelta(minutes=conf.sign_in_lock_minutes)


def counted_address(request: HttpRequest) -> str | None:
    """Return the address whose failures are counted. Networks of IPv6 count as one address, because hosts have many."""
    address = client_address(request)
    if not address or ip_address(address).version == 4:
        return address or None
    return str(ip_network((address, 64), strict=False).network_address)


def verify_code_of(request: HttpRequest, user: User, is_valid: Callable[[str], bool]) -> bool:
    """Return True if the code in the form is valid. Wrong codes count as failed sign-ins of the account.

    `is_locked_out` is True afterwards if the account or the address is locked.
    """
    credentials = {"username": user.get_username()}
    with verifications:
        AxesProxyHandler.update_request(request)
        if not AxesProxyHandler.is_allowed(request, credentials):
            request.axes_locked_out = True  # type: ignore[attr-defined]
            return False
        if is_valid(request.POST.get("code", "")[:100].strip()):
            return True
        user_login_failed.send(__name__, credentials=credentials, request=request)
    return False


def is_locked_out(request: HttpRequest) -> bool:
    """Return True if this request was refused because of earlier failures."""
    return getattr(request, "axes_locked_out", False)


def is_account_locked(username: str) -> bool:
    """Return True if an account is locked, for one address or for all."""
    attempts = AccessAttempt.objects.filter(username=username, attempt_time__gte=timezone.now() - lock_time())
    by_address = attempts.values("ip_address").annotate(total=Sum("failures_since_start"))
    failures = by_address.values_list("total", flat=True)
    return max(failures, default=0) >= conf.sign_in_attempts or sum(failures) >= conf.sign_in_attempts * ACCOUNT_FACTOR


def reset_failures(username: str) -> int:
    """Unlock an account for all addresses. Returns the number of removed counters."""
    count: int = AccessAttempt.objects.filter(username=username).delete()[0]
    return count


def connect_sign_in_signals() -> None:
    """Connect the handlers."""
    user_logged_in.connect(_on_sign_in, dispatch_uid="audit of sign-ins")
    user_login_failed.connect(_on_failure, dispatch_uid="audit of failed sign-ins")
    user_logged_out.connect(_on_sign_out, dispatch_uid="audit of sign-outs")


def _on_sign_in(request: HttpRequest, user: User, **_: object) -> None:
    start_session(request)
    method = METHODS.get(request.session[BACKEND_SESSION_KEY], "")
    record_sign_in(user.get_username(), "sign in", client_address(request), reason=method)


def _on_failure(credentials: dict[str, Any], request: HttpRequest | None = None, **_: object) -> None:
    is_locked = request is not None and is_locked_out(request)
    if is_locked and getattr(request, "axes_failures_since_start", None) is None:
        # The account was locked before. An entry for each further attempt would fill the audit log.
        return
    reason = f"Locked for {conf.sign_in_lock_minutes} minutes." if is_locked else ""
    address = client_address(request) if request is not None else ""
    record_sign_in(str(credentials.get("username") or "")[:150], "fail to sign in", address, reason=reason)


def _on_sign_out(request: HttpRequest, user: User | None, **_: object) -> None:
    if user is not None:
        record_sign_in(user.get_username(), "sign out", client_address(request))
