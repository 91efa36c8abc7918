"""The pages and the APIs of the server at a path of another Django project: one view with middleware of its own.

Within the view, addresses are those of the server, below the path: the URL patterns are `conductor_app.urls`, and the
path is the script prefix. So the project may have an admin site, namespaces and templates with the same names. The
project's own middleware has authenticated the user before.

    path("conductor/", include("conductor_app.in_process.urls"))
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix, get_urlconf, path, set_script_prefix, set_urlconf
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt

from ..web.client_views import mark_slashes, without_empty_segments
from ..web.middleware import (
    ClientRequestMiddleware,
    PageActorMiddleware,
    PageCsrfMiddleware,
    RequestContextMiddleware,
    content_security_policy,
)
from ..web.pages import with_own_template
from ..web.preferences import user_locale_middleware

PATTERNS = "conductor_app.urls"
PAGES = "admin/"
LANGUAGE = "en"
"""The language of pages and replies, whatever that of the project is: their texts have no translations."""
MIDDLEWARE: tuple[Any, ...] = (
    RequestContextMiddleware,
    ClientRequestMiddleware,
    PageCsrfMiddleware,
    PageActorMiddleware,
    user_locale_middleware,
    content_security_policy,
)


class MountedHandler(BaseHandler):
    """Django's handler with the middleware of this module instead of the project's."""

    _middleware_chain: Any
    _get_response: Any

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the chain of middleware."""
        self._view_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        self._template_response_middleware = [self.process_template_response]
        handler = convert_exception_to_response(self._get_response)
        for factory in reversed(MIDDLEWARE):
            layer = factory(handler)
            if hasattr(layer, "process_view"):
                self._view_middleware.insert(0, layer.process_view)
            if hasattr(layer, "process_exception"):
                self._exception_middleware.append(layer.process_exception)
            handler = convert_exception_to_response(layer)
        self._middleware_chain = handler

    def process_template_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Let the response use the templates of the pages."""
        return with_own_template(response)

    def make_view_atomic(self, view: Any) -> Any:
        """Return the view: commands have transactions of their own, and polls wait outside of one."""
        return view

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to a request, whose addresses are those of the server."""
        response: HttpResponse = self._middleware_chain(request)
        return response


@cache
def _handler() -> MountedHandler:
    handler = MountedHandler()
    handler.load_middleware()
    return handler


@csrf_exempt
@login_not_required
def serve_mounted(request: HttpRequest, path: str = "", **_: object) -> HttpResponseBase:
    """Respond as the server does. `path`: the address below the one where the project has included it.

    The pages check CSRF tokens themselves, and the APIs check credentials themselves.
    """
    user = getattr(request, "user", None)
    is_page = path.startswith(PAGES) and request.method == "GET"
    if is_page and user is not None and user.is_anonymous and cast(Any, settings).is_overridden("LOGIN_URL"):
        return redirect_to_login(request.get_full_path())
    prefix = request.path.removesuffix(path)
    with addresses_below(request, prefix, _mark_path(request, prefix) or without_empty_segments(f"/{path}")):
        return _handler().respond(request)


serve_mounted._non_atomic_requests = frozenset(connections)  # type: ignore[attr-defined]


@contextmanager
def addresses_below(request: HttpRequest, prefix: str, path: str) -> Iterator[None]:
    """Resolve and reverse addresses as those of the server below a prefix, until the end of the block."""
    before = get_urlconf(), get_script_prefix(), request.path_info, request.resolver_match
    of_request = getattr(request, "urlconf", None)
    changed: Any = request
    set_urlconf(PATTERNS)
    set_script_prefix(prefix)
    changed.urlconf, request.path_info = PATTERNS, path
    try:
        with translation.override(LANGUAGE):
            yield
    finally:
        urlconf, script_prefix, request.path_info, request.resolver_match = before
        set_urlconf(urlconf)
        set_script_prefix(script_prefix)
        if of_request is None:
            del changed.urlconf
        else:
            changed.urlconf = of_request


def _mark_path(request: HttpRequest, prefix: str) -> str:
    """Return the path with marks for encoded slashes if the web server passes the path as it was sent, otherwise ""."""
    raw = getattr(request, "scope", {}).get("raw_path") or b""
    target = request.META.get("RAW_URI") or raw.decode("latin-1")
    if not target.startswith(prefix):
        return ""
    marked = mark_slashes(without_empty_segments(f"/{target.removeprefix(prefix)}"))
    return (marked or "").encode("latin-1").decode(errors="replace")


app_name = "conductor"
urlpatterns = [
    path("<path:path>", serve_mounted),
    path("", serve_mounted, name="index"),
    # The first pattern matches these. They are for `reverse("conductor:run", args=[run_id])` in the project.
    path("admin/conductor/run/<str:run_id>/change/", serve_mounted, name="run"),
    path("api", serve_mounted, name="api"),
]
