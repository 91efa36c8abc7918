"""What stands in the place of a page that is not there, not open to this person, or broke.

Whoever is signed in keeps the sidebar and the ways on around it; strangers, and scripts that ask for a part of a page,
read the words alone, and so does everybody where the shell itself cannot be made.
"""

import logging
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from ..telemetry import log_context
from .site import site

log = logging.getLogger(__name__)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400: what was sent is no form of a page's, or the server was called by a name that is not its own."""
    host = request.META.get("HTTP_HOST", "")[:255] if isinstance(exception, DisallowedHost) else ""
    return _render_error(request, 400, {"title": _("Not understood"), "host": host})


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403: the permission that is missing, where it is known."""
    return _render_error(request, 403, {"title": _("Not open to you"), "permission": _exception_text(exception)})


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: what was asked for, where something is known of it."""
    return _render_error(request, 404, {"title": _("Not here"), "why": _exception_text(exception)})


def server_error(request: HttpRequest) -> HttpResponse:
    """500: the id under which the log says why."""
    return _render_error(request, 500, {"title": _("Not made"), "request_id": log_context.request_id()})


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: a form without the token of the session that sends it."""
    return _render_error(request, 403, {"title": _("Too old")}, "403_csrf.html")


def _exception_text(exception: Exception) -> str:
    """What it says for people; the framework puts a table of addresses in the same place."""
    text = exception.args[0] if exception.args else ""
    return text if isinstance(text, str) else ""


def _render_error(request: HttpRequest, status: int, context: dict[str, Any], template: str = "") -> HttpResponse:
    template = template or f"{status}.html"
    try:
        html = render_to_string(template, _page_shell_context(request) | context, request)
    except Exception:
        # The database may be what is broken, and the shell asks it.
        log.exception("shell_failed")
        html = render_to_string(template, context)
    return HttpResponse(html, status=status)


def _page_shell_context(request: HttpRequest) -> dict[str, Any]:
    """The shell with what stands in it; nothing for whoever is not to see it."""
    is_a_page = request.path.startswith(reverse("admin:index")) and request.headers.get("X-Requested-With") != "fetch"
    if not (is_a_page and hasattr(request, "user") and site.has_permission(request)):
        return {}
    return site.each_context(request) | {"shell": "ops/states/page.html"}
