"""Base class of the views for API clients, with replies that wait and replies to requests that no view receives.

A reply that waits is sent when its wait ends, by a server that keeps the request meanwhile or by a waiting thread.
Names in a path may contain slashes, which SDKs send as `%2F`. Web servers decode the path before any application code
runs, so each `%2F` is replaced with a mark until the path is split into its parameters.
"""

import json
import logging
import re
import socket
from collections.abc import Callable
from contextvars import copy_context
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote_to_bytes

from django.http import HttpRequest, HttpResponse
from django.views import View

from ..core.errors import RequestRefused
from ..core.primitives import JsonValue
from ..db.transient_errors import describe_transient, discard_broken_connection
from ..notifications import PendingWait, WaitingClient, WaitSteps, wait_in_thread
from .waiting_requests import ACCEPTS_WAITING_KEY, disconnect_check

log = logging.getLogger(__name__)


class ClientView(View):
    """Base class of the views for API clients."""

    serves_clients = True
    """Its requests without cookies skip the middleware for pages."""
    serves_workers = False
    """Its requests without cookies skip Django's handler as well (`WorkerRequests`)."""

    @classmethod
    def render_error(cls, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the response to an error before the view is called; None for Django's page."""
        return None

    def setup(self, request: HttpRequest, *args: object, **kwargs: object) -> None:
        """Store the request.

        Django also stores the view's method `get` in the view as `head`. This reference cycle would keep each request
        and its body in memory until Python collects garbage, which happens after about a thousand requests.
        """
        self.request = request


def http_method(request: HttpRequest) -> str:
    """Return the HTTP method. HEAD is handled as GET; the web server omits the body."""
    return "GET" if request.method == "HEAD" else str(request.method)


TASKCLUSTER_PATH = re.compile(r"/+api/+(queue|object|artifacts|auth)/v1(/|$)")
CONDUCTOR_PATH = re.compile(r"/+(api|webhook)(/|$)")
TASKCLUSTER_CODES = {413: "InputTooLarge", 404: "ResourceNotFound", 403: "InsufficientScopes"}
HOST_NAME = socket.gethostname()


def refusal(target: str, status: int, message: str) -> tuple[str, bytes]:
    """Return the content type and the body of a refusal. It is plain text unless the target is an address of an API."""
    path = target.partition("?")[0]
    if TASKCLUSTER_PATH.match(path):
        code = TASKCLUSTER_CODES.get(status, "InputError" if status < 500 else "InternalServerError")
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        document = taskcluster_error(code, status, message, time)
    elif CONDUCTOR_PATH.match(path):
        document = {"status": status, "message": message, "instance": HOST_NAME, "retryable": status == 503}
    else:
        return "text/plain; charset=utf-8", f"{message}\n".encode()
    return "application/json", json.dumps(document).encode()


def taskcluster_error(
    code: str, status: int, message: str, time: str, method: str = "", params: Any = None, payload: JsonValue = None
) -> dict[str, Any]:
    """Return an error in Taskcluster's format (taskcluster §1.1). `method`: empty if no method received the request."""
    bullets = f"* errorCode:  {code}\n* statusCode: {status}\n* time:       {time}"
    if method:
        bullets = f"* method:     {method}\n{bullets}"
    return {
        "code": code,
        "message": f"{message}\n\n---\n\n{bullets}",
        "requestInfo": {"method": method, "params": dict(params or {}), "payload": payload, "time": time},
    }


Result = TypeVar("Result")


class WaitingReply(HttpResponse, Generic[Result]):
    """A reply that is rendered when its wait is over (`parking.WaitingRequest`).

    It has no content. The middleware sets headers, which the reply to the client receives as well.
    """

    def __init__(self, steps: WaitSteps[Result], wait: PendingWait, render: Callable[[Result], HttpResponse]) -> None:
        super().__init__()
        del self.headers["Content-Type"]
        self._steps, self._wait, self._render_result = steps, wait, render
        self._render_error: Callable[[Exception], HttpResponse] | None = None
        # The log context and the actor of the request, for the thread that continues it.
        self._context = copy_context()

    @property
    def seconds(self) -> float:
        """Return the maximum time of the current wait."""
        return self._wait.seconds

    def begin_wait(self, wake: Callable[[], None]) -> bool:
        """Call `wake` when a notification arrives. Returns False if there is one already."""
        return self._wait.waiter.begin_wait(wake)

    def resume(self) -> HttpResponse | None:
        """Continue after a wait. Returns the reply, or None if the request waits again."""
        return self._context.run(self._continue, self._wait.waiter.end_wait())

    def abandon(self) -> None:
        """End the wait, because the client has disconnected."""
        self._context.run(self._steps.close)
        self.close()

    def render_errors_with(self, render: Callable[[Exception], HttpResponse]) -> None:
        """Set the function that renders the errors of the request after its wait."""
        self._render_error = render

    def _continue(self, is_woken: bool) -> HttpResponse | None:
        discard_broken_connection()
        try:
            try:
                self._wait = self._steps.send(is_woken)
                return None
            except StopIteration as end:
                reply = self._render_result(end.value)
        except Exception as error:
            if self._render_error is None:
                raise
            reply = self._render_error(error)
        for name, value in self.headers.items():
            reply.headers.setdefault(name, value)
        return reply


def waiting_client(request: HttpRequest) -> WaitingClient:
    """Return the client of a request that may wait."""
    return WaitingClient(disconnect_check(request), holds_thread=ACCEPTS_WAITING_KEY not in request.META)


def reply_after(
    request: HttpRequest, steps: WaitSteps[Result], render: Callable[[Result], HttpResponse]
) -> HttpResponse:
    """Return the reply that `render` makes of the result. If the server keeps waiting requests, it is rendered later.

    Raises:
        Exception: what the steps raise before the first wait.
    """
    if ACCEPTS_WAITING_KEY not in request.META:
        return render(wait_in_thread(steps))
    try:
        wait = next(steps)
    except StopIteration as end:
        return render(end.value)
    return WaitingReply(steps, wait, render)


def render_errors(reply: HttpResponse, render: Callable[[Exception], HttpResponse]) -> None:
    """Render the errors of a reply that waits as those of other requests."""
    if isinstance(reply, WaitingReply):
        reply.render_errors_with(render)


SLASH_MARK = "\uf02f"
"""A character of the private use area, which no name contains."""
MARKED_PATH = re.compile(r"/api/(?!(?:queue|object|artifacts|auth)/v1/)")
ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)


def mark_slashes(target: str) -> str | None:
    """Return the path of a request's target as WSGI represents it, with marks; None if it has no encoded slash."""
    path = target.partition("?")[0]
    if not (ENCODED_SLASH.search(path) and MARKED_PATH.match(path)):
        return None
    return unquote_to_bytes(ENCODED_SLASH.sub(quote(SLASH_MARK), path)).decode("latin-1")


def unmark_slashes(url_kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return path parameters with the marks replaced by slashes. Numbers stay as they are."""
    return {
        name: value.replace(SLASH_MARK, "/") if isinstance(value, str) else value for name, value in url_kwargs.items()
    }


def clean_path_parameters(request: HttpRequest, url_kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return path parameters as they were meant: with slashes, and without NUL, which PostgreSQL keeps in no text."""
    if "\0" in request.path_info:
        url_kwargs = {
            name: value.replace("\0", "") if isinstance(value, str) else value for name, value in url_kwargs.items()
        }
    return unmark_slashes(url_kwargs) if SLASH_MARK in request.path_info else url_kwargs


def log_transient_error(request: HttpRequest, error: BaseException) -> None:
    """Log why requests fail. During an outage all of them do, so the settings drop repeated lines of this logger.

    A refused request needs no line: its reply has the reason.
    """
    if not isinstance(error, RequestRefused):
        text = f"{type(error).__name__}: {error}"[:500]
        log.error("Requests fail: %s %s", describe_transient(error), text, extra={"path": request.path})


EMPTY_SEGMENTS = re.compile(r"^/+(api/)?/*")


def without_empty_segments(path: str) -> str:
    """Return the path without empty segments at its start and after /api.

    The Python and the Go SDK send them if the address of the server ends with a slash. Elsewhere an empty segment is
    an empty name, which must not be read as the word that follows it.
    """
    return EMPTY_SEGMENTS.sub(r"/\1", path, count=1) if "//" in path else path
