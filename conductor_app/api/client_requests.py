"""Middleware that passes requests of API clients to their views, without the middleware for pages behind it.

The middleware for pages does nothing for these requests, but its layers took as long as the query of an empty poll.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch, URLResolver, get_resolver
from django.urls.exceptions import Resolver404

from ..access.page_middleware import HostMiddleware, is_client_request
from ..parking import ACCEPTS_WAITING_KEY
from ..telemetry import log_context
from ..telemetry.requests import ids_in_address
from .client_views import ClientView

POLICY = "default-src 'none'; frame-ancestors 'none'"
"""The content security policy of API responses, which browsers do not display."""
CACHED_PATHS = 512
"""The number of cached paths. Clients poll the same paths; those with ids leave the cache soon."""


class ClientRequestMiddleware:
    """Handles the requests of API clients. Must follow the middleware that applies to every request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        # An exception becomes the same response as behind the other middleware, with the same headers.
        self._respond = convert_exception_to_response(self._check_and_call)
        self._host = HostMiddleware(get_response)
        self._security = SecurityMiddleware(get_response)
        self._frames = XFrameOptionsMiddleware(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        match = find_client_view(request) if is_client_request(request) else None
        if match is None:
            # Pages, and requests of browsers, pass middleware that needs the final response.
            request.META.pop(ACCEPTS_WAITING_KEY, None)
            return self._get_response(request)
        request.resolver_match = match
        log_context.bind(**ids_in_address(match.kwargs))
        response = cast(HttpResponse, self._respond(request))
        response.headers.setdefault("Content-Security-Policy", POLICY)
        self._frames.process_response(request, response)
        return self._security.process_response(request, response)

    def _check_and_call(self, request: HttpRequest) -> HttpResponse:
        match = request.resolver_match
        assert match is not None
        try:
            refusal = self._security.process_request(request) or self._host.process_request(request)
        except Exception as error:
            view_class: type[ClientView] = cast(Any, match.func).view_class
            refusal = view_class.render_error(request, error)
            if refusal is None:
                raise
        if refusal is not None:
            return refusal
        response: HttpResponse = match.func(request, *match.args, **match.kwargs)
        return response


def find_client_view(request: HttpRequest) -> ResolverMatch | None:
    """Return the view of a request if it serves API clients, otherwise None."""
    try:
        match = _resolve(get_resolver(getattr(request, "urlconf", None)), request.path_info)
    except Resolver404:
        return None
    view_class: Any = getattr(match.func, "view_class", None)
    return match if getattr(view_class, "serves_clients", False) else None


@lru_cache(CACHED_PATHS)
def _resolve(resolver: URLResolver, path: str) -> ResolverMatch:
    return resolver.resolve(path)
