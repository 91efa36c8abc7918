"""The requests of workers, without the layers of Django that only other requests need.

Polls and reports are almost all requests of a busy server. Django's handler, its signals and its chain of middleware
took half of the time around the handler of a report. Here, these requests have what every request of a client has: an
id and a span, the check of the host, the headers, the format of errors, and the release of database connections.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from django.core.handlers.wsgi import WSGIRequest, get_path_info, get_script_name
from django.db import close_old_connections
from django.http import HttpResponse
from django.urls import ResolverMatch, set_script_prefix
from django.utils.log import log_response

from .middleware import ClientRequestMiddleware, RequestContextMiddleware, find_view_of_path

WORKER_PATHS = re.compile(r"/api/tasks(/update-v2|/poll/.+)?")
"""The paths that may have a `WorkerView`. The resolver decides: other patterns begin the same way."""
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


class WorkerRequests:
    """A WSGI application that handles the requests of workers, and passes all others on to `application`."""

    def __init__(self, application: Application) -> None:
        self._application = application
        clients = ClientRequestMiddleware(_call_no_view)
        self._respond = RequestContextMiddleware(cast(Any, clients.respond))

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        match = find_worker_view(environ)
        if match is None:
            return self._application(environ, start_response)
        set_script_prefix(get_script_name(environ))
        close_old_connections()
        request = WSGIRequest(environ)
        request.resolver_match = match
        response = self._respond(request)
        if response.status_code >= 400:
            log_response("%s: %s", response.reason_phrase, request.path, response=response, request=request)
        start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
        # A reply that waits has no content yet, and releases what it holds itself.
        return response if hasattr(response, "begin_wait") else WorkerReply(response.content)


def find_worker_view(environ: Environ) -> ResolverMatch | None:
    """Return the view of a request of a worker, otherwise None. A request with cookies comes from a browser."""
    if not WORKER_PATHS.fullmatch(environ.get("PATH_INFO", "")) or environ.get("HTTP_COOKIE"):
        return None
    match = find_view_of_path(get_path_info(environ))
    view_class: Any = getattr(match and match.func, "view_class", None)
    return match if getattr(view_class, "serves_workers", False) else None


class WorkerReply:
    """The body of a reply, after which the thread has no database connection that is too old or broken."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content

    def close(self) -> None:
        """Release the connections, as Django does with a signal."""
        close_old_connections()


def _call_no_view(request: Any) -> HttpResponse:
    raise NotImplementedError
