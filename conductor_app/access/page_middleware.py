"""Middleware that only pages need: a worker's request has no session, and passes all of it by."""

from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.deprecation import MiddlewareMixin


def is_client_request(request: HttpRequest) -> bool:
    """Return True if a program calls the API. A browser sends cookies and is authenticated by them."""
    return request.path_info.startswith("/api/") and "HTTP_COOKIE" not in request.META


class PageOnlyMiddleware(MiddlewareMixin):
    """Stands before a middleware of the framework."""

    def __call__(self, request: HttpRequest) -> Any:
        if is_client_request(request):
            return self.get_response(request)
        return super().__call__(request)


class PageSessionMiddleware(PageOnlyMiddleware, SessionMiddleware):
    """Sessions of people in browsers."""


class PageCsrfMiddleware(PageOnlyMiddleware, CsrfViewMiddleware):
    """CSRF protection. A request without cookies needs none."""


class PageAuthenticationMiddleware(PageOnlyMiddleware, AuthenticationMiddleware):
    """Authentication of the user of a page."""


class PageMessageMiddleware(PageOnlyMiddleware, MessageMiddleware):
    """Messages for the next page."""
