"""Limits of failed sign-ins: per account and address, per account, and per address (django-axes)."""

from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_address, ip_network
from threading import BoundedSemaphore
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_login_failed
from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone

from ... import conf
from ...access.client_address import client_address

ACCOUNT_FACTOR, ADDRESS_FACTOR = 4, 10
"""The multiples of `sign_in_attempts` that lock an account for all addresses, and an address for all accounts."""
MAX_PARALLEL = 4

verifications = BoundedSemaphore(MAX_PARALLEL)
"""Limits the passwords that a process verifies at the same time: each takes CPU time, and parallel guesses would all
pass the check of earlier failures."""


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
