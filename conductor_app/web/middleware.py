"""Middleware for pages, which requests of API clients skip because they have no session, and the check of hosts."""

from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.deprecation import MiddlewareMixin

from .. import conf
from ..core.errors import Forbidden
from . import permission_cache
from .conductor_auth import Actor
from .current_actor import acting_as
from .session_limits import check_session
from .signed_links import ARTIFACT_PREFIX, is_artifact_host

CLIENT_PATHS = ("/api/", "/mcp")
HEALTH_PATHS = ("/health", "/actuator/health")


def is_client_request(request: HttpRequest) -> bool:
    """Return True if a program calls the API. A request with cookies comes from a browser."""
    return request.path_info.startswith(CLIENT_PATHS) and not request.META.get("HTTP_COOKIE")


class PageOnlyMiddleware(MiddlewareMixin):
    """Base class that skips a middleware of Django for requests of API clients."""

    def __call__(self, request: HttpRequest) -> Any:
        if is_client_request(request):
            return self.get_response(request)
        return super().__call__(request)


class HostMiddleware(CommonMiddleware):
    """Checks the host of a request, except that of health checks: orchestrators use the address of a container."""

    def process_request(self, request: HttpRequest) -> Any:
        """Continue, unless the host is refused.

        Raises:
            DisallowedHost: when it is not one of ALLOWED_HOSTS.
            Http404: when it is the host of artifacts, and the request is for another part of this server.
        """
        if request.path_info.startswith(HEALTH_PATHS):
            return None
        response = super().process_request(request)
        is_artifact = request.path_info.startswith(ARTIFACT_PREFIX)
        if conf.artifact_url and not is_artifact and is_artifact_host(request.get_host()):
            raise Http404("This host has only artifacts.")
        return response


class PageSessionMiddleware(PageOnlyMiddleware, SessionMiddleware):
    """Sessions of users."""


class PageCsrfMiddleware(PageOnlyMiddleware, CsrfViewMiddleware):
    """CSRF protection. A request without cookies does not need it."""


class PageAuthenticationMiddleware(PageOnlyMiddleware, AuthenticationMiddleware):
    """Authentication of users by unexpired sessions. Commands of pages check the permissions of the user."""

    def __call__(self, request: HttpRequest) -> Any:
        if is_client_request(request):
            return self.get_response(request)
        self.process_request(request)
        check_session(request)
        with acting_as(lambda: _actor_of(request)):
            return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Show the page for missing permissions when a command of a page is refused.

        Raises:
            PermissionDenied: instead of Forbidden.
        """
        if isinstance(exception, Forbidden) and not is_client_request(request):
            raise PermissionDenied(exception.message) from exception


def _actor_of(request: HttpRequest) -> Actor:
    user = request.user
    if not (user.is_authenticated and user.is_active and user.is_staff):
        return Actor("anonymous")
    return Actor(user.get_username(), permission_cache.permission_set_of(user.pk), user.pk)


class PageMessageMiddleware(PageOnlyMiddleware, MessageMiddleware):
    """Messages that the next page displays."""
