"""Middleware that only pages need: a worker's request has no session, and passes all of it by."""

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware


def is_client_request(request: HttpRequest) -> bool:
    """Whether a program calls the API: a browser would send its cookies, and is then asked who it is by them."""
    return request.path_info.startswith("/api/") and "HTTP_COOKIE" not in request.META


class PageOnlyMiddleware:
    """Stands before a middleware of the framework."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request) if is_client_request(request) else super().__call__(request)


class PageSessionMiddleware(PageOnlyMiddleware, SessionMiddleware):
    """Sessions of people in browsers."""


class PageCsrfMiddleware(PageOnlyMiddleware, CsrfViewMiddleware):
    """The guard against other sites' forms; without a cookie there is nothing that they could use."""


class PageAuthenticationMiddleware(PageOnlyMiddleware, AuthenticationMiddleware):
    """Who is signed in."""


class PageMessageMiddleware(PageOnlyMiddleware, MessageMiddleware):
    """What the next page says."""
