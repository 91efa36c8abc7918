"""Expiry of sessions: a maximum idle time, and a maximum age."""

from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY, logout
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpRequest

from .. import clock, conf

SIGNED_IN_AT, USED_AT, EXPIRED = "signed_in_at", "used_at", "session_expired"
MINUTE_MS = 60_000
OPENID_BACKEND = "conductor_app.admin.sign_in.openid.OpenIdBackend"


def check_session(request: HttpRequest) -> None:
    """Sign out the user of the request if the session has expired.

    Requests that a page sends by itself do not extend a session. The time of the last use is stored once per minute.
    """
    if not request.user.is_authenticated:
        return
    now, session = clock.now(), request.session
    signed_in_at, used_at = session.get(SIGNED_IN_AT), session.get(USED_AT)
    if signed_in_at is None or used_at is None:
        start_session(request)
    elif _is_over(now - signed_in_at, now - used_at):
        logout(request)
        request.session[EXPIRED] = True
    elif now - used_at >= MINUTE_MS and request.headers.get("X-Requested-With") != "fetch":
        session[USED_AT] = now


def _is_over(age_ms: int, idle_ms: int) -> bool:
    return age_ms >= conf.session_hours * 60 * MINUTE_MS or idle_ms >= conf.session_idle_minutes * MINUTE_MS


def start_session(request: HttpRequest) -> None:
    """Store when the session began."""
    request.session[SIGNED_IN_AT] = request.session[USED_AT] = clock.now()


def end_other_sessions(user: User, session_key: str | None) -> int:
    """End the sessions of a user except the given one. Returns how many."""
    ended = [
        session.pk
        for session in Session.objects.exclude(pk=session_key or "").iterator(chunk_size=500)
        if session.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    Session.objects.filter(pk__in=ended).delete()
    return len(ended)


def is_single_sign_on(request: HttpRequest) -> bool:
    """Return True if an OpenID Connect provider has authenticated the user of the session."""
    return request.session.get(BACKEND_SESSION_KEY) == OPENID_BACKEND
