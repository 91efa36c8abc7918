"""Middleware: an id and a span for each request, and the steps that pages need and requests of API clients skip.

The middleware for pages does nothing for requests of clients, but its layers took as long as the query of an empty
poll. The content security policy allows files of this server only, and no inline scripts.

Polls and reports of workers, almost all requests of a busy server, skip Django's handler, its signals and its chain of
middleware, which took half of the time around the handler of a report. `WorkerRequests` gives them what every request
of a client has: an id and a span, the check of the host, the headers, the format of errors, and the release of database
connections.
"""

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from time import perf_counter
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import PermissionDenied
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIRequest, get_path_info, get_script_name
from django.db import close_old_connections
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch, URLResolver, get_resolver, set_script_prefix
from django.urls.exceptions import Resolver404
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject
from django.utils.log import log_response

from ..access.authentication import Actor, acting_as
from ..access.commands.people import require_read_only, show_as_person
from ..access.permissions import PagePermissions
from ..access.tokens import ARTIFACT_PREFIX, check_session, is_artifact_host
from ..core.errors import Forbidden
from ..core.primitives import ID_PATTERN
from ..db.fields import user_key
from ..settings import conf
from ..telemetry import log_context
from ..telemetry import log_context as spans
from .client_views import ClientView
from .waiting_requests import ACCEPTS_WAITING_KEY

STRICT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
# The OpenAPI page is a third-party library that starts from an inline script.
RELAXED_POLICY = STRICT_POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
RELAXED_PATHS = ("/api/docs",)
WORKER_PATHS = re.compile(r"/api/tasks(/update-v2|/poll/.+)?")
"""The paths that may have a `WorkerView`. The resolver decides: other patterns begin the same way."""
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Add the policy to every response that does not have one (middleware)."""

    def handle_request(request: HttpRequest) -> HttpResponse:
        nonces: list[str] = []

        def create_nonce() -> str:
            nonces.append(secrets.token_urlsafe(16))
            return nonces[-1]

        request.csp_nonce = SimpleLazyObject(create_nonce)  # type: ignore[attr-defined]
        response = get_response(request)
        policy = RELAXED_POLICY if request.path_info.rstrip("/") in RELAXED_PATHS else STRICT_POLICY
        if nonces:
            # The page has read the nonce: it has a script that inserts styles, and those styles carry the nonce.
            policy = policy.replace("style-src 'self'", f"style-src 'self' 'nonce-{nonces[0]}'")
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return handle_request


log = logging.getLogger(__name__)

REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
ID_PARAMETERS = {"workflow_id": "run_id", "workflow": "run_id", "task_id": "attempt_id"}
"""The names in log lines and spans, by path parameter. Some paths have a workflow name instead of an id."""


class RequestContextMiddleware:
    """Adds an id to the log lines and the response of each request, and traces the request as a span."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began, id = perf_counter(), _request_id_of(request)
        log_context.reset(request_id=id)
        try:
            with spans.span(
                str(request.method), {"request_id": id}, _trace_headers(request.META), is_request=True
            ) as span:
                response = self.get_response(request)
                if span is not None:
                    _record_response(span, request, response)
            response.headers["X-Request-Id"] = id
            if log.isEnabledFor(logging.DEBUG):
                facts = {"method": request.method, "path": request.path, "status": response.status_code}
                log.debug("request_completed", extra=facts | {"took_ms": round((perf_counter() - began) * 1000, 1)})
            return response
        finally:
            log_context.reset()

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Add the ids in the path to the context. The path is resolved at this point."""
        log_context.bind(**ids_in_address(kwargs))


def ids_in_address(kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids in path parameters, by their names in log lines and spans."""
    values = {name: str(kwargs.get(parameter, "")) for parameter, name in ID_PARAMETERS.items()}
    return {name: id for name, id in values.items() if ID_PATTERN.fullmatch(id)}


def _request_id_of(request: HttpRequest) -> str:
    """Return the request id that the client or a proxy has sent, or a new id if it is missing or invalid."""
    received = request.META.get("HTTP_X_REQUEST_ID", "")
    return received if REQUEST_ID_PATTERN.fullmatch(received) else secrets.token_hex(16)


def _trace_headers(meta: Mapping[str, Any]) -> dict[str, str]:
    headers = {name: meta.get(f"HTTP_{name.upper()}") for name in ("traceparent", "tracestate")}
    return {name: value for name, value in headers.items() if value}


def _record_response(span: Any, request: HttpRequest, response: HttpResponse) -> None:
    """Record the route and the status, which are known after the response."""
    match = request.resolver_match
    if match is not None:
        span.update_name(f"{request.method} /{match.route}")
        span.set_attributes({f"conductor.{name}": id for name, id in ids_in_address(match.kwargs).items()})
    span.set_attribute("http.request.method", str(request.method))
    span.set_attribute("http.response.status_code", response.status_code)
    if response.status_code >= 500:
        from opentelemetry.trace import Status, StatusCode

        span.set_status(Status(StatusCode.ERROR))


Handler = Callable[[HttpRequest], HttpResponse]

CLIENT_PATHS = ("/api/", "/mcp")
HEALTH_PATHS = ("/health", "/actuator/health")
POLICY = "default-src 'none'; frame-ancestors 'none'"
"""The content security policy of API responses, which browsers do not display."""
CACHED_PATHS = 512
"""The number of cached paths. Clients poll the same paths; those with ids leave the cache soon."""


class PathCookieStorage(CookieStorage):
    """Messages in a cookie with the path of the session's cookie."""

    cookie_name = f"messages{getattr(settings, 'COOKIE_SUFFIX', '')}"

    def _update_cookie(self, encoded_data: str, response: HttpResponse) -> None:
        super()._update_cookie(encoded_data, response)  # type: ignore[misc]  # the stubs lack it
        response.cookies[self.cookie_name]["path"] = settings.SESSION_COOKIE_PATH


class MessageStorage(FallbackStorage):
    """Messages in a cookie, and those that do not fit in the session."""

    storage_classes = (PathCookieStorage, SessionStorage)


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


class PageActorMiddleware(PageOnlyMiddleware):
    """Commands of pages check the permissions of the user, whom another middleware has authenticated."""

    def __call__(self, request: HttpRequest) -> Any:
        if is_client_request(request):
            return self.get_response(request)
        with acting_as(lambda: _actor_of(request)):
            return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Show the page for missing permissions when a command of a page is refused.

        Raises:
            PermissionDenied: instead of Forbidden.
        """
        if isinstance(exception, Forbidden) and not is_client_request(request):
            raise PermissionDenied(exception.message) from exception


class PageAuthenticationMiddleware(PageActorMiddleware, AuthenticationMiddleware):
    """Authentication of the server's own users by unexpired sessions."""

    def __call__(self, request: HttpRequest) -> Any:
        if not is_client_request(request):
            self.process_request(request)
            check_session(request)
            show_as_person(request)
        return super().__call__(request)

    def process_view(self, request: HttpRequest, *_: object) -> None:
        """Refuse changes by an administrator who sees the pages as another person.

        Raises:
            PermissionDenied: when the request is not one that only reads.
        """
        require_read_only(request)


def _actor_of(request: HttpRequest) -> Actor:
    user = request.user
    if not (user.is_authenticated and user.is_active and user.is_staff):
        return Actor("anonymous")
    return Actor(user.get_username(), PagePermissions(user), user_key(user.pk), is_person=True)


class PageMessageMiddleware(PageOnlyMiddleware, MessageMiddleware):
    """Messages that the next page displays."""


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
        return self.respond(request)

    def respond(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response to a request of a client, whose path is resolved."""
        if request.resolver_match is not None and request.resolver_match.kwargs:
            log_context.bind(**ids_in_address(request.resolver_match.kwargs))
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
    match = find_view_of_path(request.path_info, getattr(request, "urlconf", None))
    view_class: Any = getattr(match and match.func, "view_class", None)
    return match if getattr(view_class, "serves_clients", False) else None


def find_view_of_path(path: str, urlconf: str | None = None) -> ResolverMatch | None:
    """Return the view of a path, or None. `urlconf`: the module of other patterns than those of the server."""
    try:
        return _resolve(get_resolver(urlconf), path)
    except Resolver404:
        return None


@lru_cache(CACHED_PATHS)
def _resolve(resolver: URLResolver, path: str) -> ResolverMatch:
    return resolver.resolve(path)


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
