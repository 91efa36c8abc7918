"""The WSGI application, for servers such as gunicorn."""

import os
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.wsgi import get_wsgi_application

from .utils import clock, process_state
from .web.client_views import mark_slashes, refusal, without_empty_segments

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")

HEALTH_PATHS = ("/health", "/actuator/health")
STREAMED_PREFIX = "/api/artifacts/"
"""The prefix of paths whose bodies are streamed, because they may be larger than memory."""
Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def with_chunked_bodies(application: Application) -> Application:
    """Read chunked bodies and set their length. The JavaScript SDK sends them, and Django ignores them otherwise."""

    def handle(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_chunked = environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked"
        if (
            is_chunked
            and not environ.get("CONTENT_LENGTH")
            and not environ.get("PATH_INFO", "").startswith(STREAMED_PREFIX)
        ):
            read_full_body(environ)
        return application(environ, start_response)

    return handle


def read_full_body(environ: Environ) -> None:
    """Read the body, up to one byte beyond the limit, so that the API refuses a larger one with its own error."""
    from .settings import conf

    body = environ["wsgi.input"].read(conf.max_request_bytes + 1)
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = BytesIO(body), str(len(body))


def with_slashes_in_names(application: Application) -> Application:
    """Mark encoded slashes inside names, on servers that pass the original request target. Remove empty segments."""

    def handle(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        target = environ.get("RAW_URI", "").removeprefix(environ.get("SCRIPT_NAME", ""))
        path = mark_slashes(without_empty_segments(target))
        environ["PATH_INFO"] = path or without_empty_segments(environ.get("PATH_INFO", ""))
        return application(environ, start_response)

    return handle


def with_refusals(application: Application) -> Application:
    """Answer requests that Django refuses before it has a request object, which its error handling requires.

    An example is a query with too many fields, if the content type names a charset.
    """

    def handle(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            return application(environ, start_response)
        except SuspiciousOperation:
            kind, body = refusal(
                environ.get("PATH_INFO", ""), 400, "The request is invalid. Check its query and headers."
            )
            start_response("400 Bad Request", [("Content-Type", kind), ("Content-Length", str(len(body)))])
            return [body]

    return handle


def with_worker_requests(application: Application) -> Application:
    """Let the requests of workers pass by Django's handler, except when it records queries for debugging."""
    from .web.middleware import WorkerRequests

    return application if settings.DEBUG else WorkerRequests(application)


def with_prefix(application: Application, prefix: str) -> Application:
    """Serve the application below a prefix of paths. Health checks are also served without it, to orchestrators."""

    def handle(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == prefix or path.startswith(f"{prefix}/"):
            environ["SCRIPT_NAME"], environ["PATH_INFO"] = prefix, path[len(prefix) :] or "/"
        elif environ.get("SCRIPT_NAME") != prefix and not path.startswith(HEALTH_PATHS):
            kind, body = refusal(path, 404, f"The paths of this server begin with {prefix}/.")
            start_response("404 Not Found", [("Content-Type", kind), ("Content-Length", str(len(body)))])
            return [body]
        return application(environ, start_response)

    return handle if prefix else application


application = with_refusals(with_worker_requests(get_wsgi_application()))
application = with_slashes_in_names(with_chunked_bodies(application))
application = with_prefix(application, settings.FORCE_SCRIPT_NAME or "")
process_state.server_started.value = clock.now()
