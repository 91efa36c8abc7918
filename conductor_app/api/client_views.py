"""Base class of the views for API clients."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views import View


class ClientView(View):
    """Base class of the views for API clients."""

    serves_clients = True
    """Its requests without cookies skip the middleware for pages."""

    @classmethod
    def render_error(cls, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the response to an error before the view is called; None for Django's page."""
        return None

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        """Store the request.

        Django also stores the view's method `get` in the view as `head`. This reference cycle would keep each request
        and its body in memory until Python collects garbage, which happens after about a thousand requests.
        """
        self.request = request


def http_method(request: HttpRequest) -> str:
    """Return the HTTP method. HEAD is handled as GET; the web server omits the body."""
    return "GET" if request.method == "HEAD" else str(request.method)
