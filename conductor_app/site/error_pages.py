"""Error pages: 400, 403, 404, 500 and the CSRF failure.

Users who are signed in keep the sidebar around the message. Anonymous users, scripts that load a part of a page, and
requests for which the sidebar itself cannot be rendered get the message alone.
"""

import logging
import sys
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from ..access.visibility import may
from ..db.transient_errors import discard_broken_connection, is_database_error, is_transient
from ..telemetry import log_context
from ..web.pages import render_to_string
from .admin import site

log = logging.getLogger(__name__)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the 400 page: an invalid form, or a Host header that is not in ALLOWED_HOSTS."""
    host = request.META.get("HTTP_HOST", "")[:255] if isinstance(exception, DisallowedHost) else ""
    return _render_error(request, 400, {"title": _("Invalid request"), "host": host})


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the 403 page with the missing permission, if it is known, or another reason."""
    permission = _exception_text(exception)
    has_some = permission.startswith("conductor.") and hasattr(request, "user") and may(request.user, permission)
    facts = {"title": _("Access denied"), "permission": permission, "has_some": has_some}
    return _render_error(request, 403, facts)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the 404 page with the reason, if there is one."""
    return _render_error(request, 404, {"title": _("Page not found"), "why": _exception_text(exception)})


def server_error(request: HttpRequest) -> HttpResponse:
    """Render the 500 page with the request id to look up in the log, or a 503 page after a transient error."""
    context: dict[str, Any] = {"request_id": log_context.request_id()}
    error = sys.exception()
    if error is not None and is_transient(error):
        discard_broken_connection()
        is_database = is_database_error(error)
        title = _("Database unavailable") if is_database else _("Temporarily unavailable")
        facts = {"title": title, "is_database": is_database, "is_transient": True}
        reply = _render_error(request, 503, context | facts, "500.html")
        reply.headers["Retry-After"] = "1"
        return reply
    return _render_error(request, 500, context | {"title": _("Internal error")})


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Render the 403 page of a form whose CSRF token does not belong to the session."""
    return _render_error(request, 403, {"title": _("Session expired")}, "403_csrf.html")


def _exception_text(exception: Exception) -> str:
    """Return the message of the exception. Django puts a dictionary of URL patterns there for unknown addresses."""
    text = exception.args[0] if exception.args else ""
    return text if isinstance(text, str) else ""


def _render_error(request: HttpRequest, status: int, context: dict[str, Any], template: str = "") -> HttpResponse:
    template = template or f"{status}.html"
    try:
        html = render_to_string(template, _page_shell_context(request) | context, request)
    except Exception:
        # The sidebar reads the database, which may be the part that fails.
        log.exception("shell_failed")
        html = render_to_string(template, context)
    return HttpResponse(html, status=status)


def _page_shell_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the sidebar and the top bar, or nothing for users who may not see them."""
    is_a_page = request.path.startswith(reverse("admin:index")) and request.headers.get("X-Requested-With") != "fetch"
    if not (is_a_page and hasattr(request, "user") and site.has_permission(request)):
        return {}
    return site.each_context(request) | {"shell": "ops/web/states/page.html"}
