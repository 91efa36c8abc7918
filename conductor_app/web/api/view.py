"""Base classes of the views of Conductor's API, and their policies as classes of Django REST framework."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from ...access.authentication import Actor, acting_as, authenticate
from ...access.commands.users import grant_to_creator
from ...access.quotas import caller_of, require_rate
from ...core.errors import NotFound
from ..client_views import ClientView, clean_path_parameters, http_method, render_errors
from .operations import NO_CONTENT, ApiOperation, EmptyOk, JsonRenderer, NoContent, PlainTextRenderer, exception_handler
from .requests import JsonParser, QueryParameters


class WorkerRequest(HttpRequest):
    """The request that a `WorkerView` receives: Django's request with the actor and the query parameters."""

    actor: Actor
    query: QueryParameters


class ApiRequest(Request):
    """The framework's request, without the reference cycle that would keep it in memory like that of Django's views."""

    def __init__(self, request: HttpRequest, **policies: Any) -> None:
        super().__init__(request, **policies)
        # The framework stores the request in it.
        self.parser_context = {}

    @property
    def stream(self) -> HttpRequest:
        """Return what the parser reads: the request, since the rules of bodies depend on its headers."""
        return self._request


class FixedContent(BaseContentNegotiation):
    """The one type of the body and the one type of the reply, whatever types the client names."""

    def select_parser(self, request: Request, parsers: Sequence[Any]) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Sequence[Any], format_suffix: Any = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class ApiView(ClientView, APIView):
    """Base class of the views of both APIs: the framework's, without negotiation of types.

    A handler returns a response that is rendered already, one that waits, or the framework's `Response`.
    """

    request_class = ApiRequest
    content_negotiation_class = FixedContent
    metadata_class = None
    versioning_class = None
    default_response_headers: ClassVar[dict[str, str]] = {}

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Dispatch as the framework does."""
        reply = super().dispatch(request, *args, **kwargs)
        # A reply that waits refers to its view: together they would be a reference cycle.
        del self.response
        return reply

    def initialize_request(self, request: HttpRequest, *args: object, **kwargs: object) -> ApiRequest:
        """Return the request for the handler."""
        return self.request_class(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
        )

    def head(self, request: ApiRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Handle HEAD as GET; the web server omits the body."""
        return getattr(self, "get", self.http_method_not_allowed)(request, *args, **kwargs)

    def finalize_response(
        self, request: ApiRequest, response: HttpResponse, *args: object, **kwargs: object
    ) -> HttpResponse:
        """Render the reply, and let a reply that waits render its errors."""
        response = super().finalize_response(request, response, *args, **kwargs)
        if isinstance(response, Response):
            response.render()
        render_errors(response, self.handle_exception)
        return response


class ConductorRequest(ApiRequest):
    """The request that a view receives: the framework's request with its operation, actor and query parameters."""

    operation: ApiOperation
    query: QueryParameters
    created_targets: Sequence[tuple[str, str]] = ()
    """Objects that the request creates: (target type, name)."""

    @property
    def actor(self) -> Actor:
        """Return the authenticated caller."""
        return self.user


class CallerAuthentication(BaseAuthentication):
    """The caller by its token, its browser session, or by open access."""

    def authenticate(self, request: ConductorRequest) -> tuple[Actor, None]:
        """Return the actor.

        Raises:
            Unauthenticated: when the credentials are missing or invalid
            Forbidden: when a page of another site sends the request.
        """
        return authenticate(request._request, changes_state=request.operation.changes_state), None


class OperationPermission(BasePermission):
    """The permission that the operation declares."""

    def has_permission(self, request: ConductorRequest, view: "ConductorView") -> bool:
        """Return True, also for a method that the view does not have, which gets 405.

        Raises:
            Forbidden: when the actor lacks the permission; the message names it.
        """
        if view.find_handler(request) is not None:
            request.operation.permission.check(request, view.kwargs)
        return True


class QuotaThrottle(BaseThrottle):
    """The quota of the caller that the operation counts for."""

    def allow_request(self, request: ConductorRequest, view: "ConductorView") -> bool:
        """Count the request.

        Raises:
            QuotaExceeded: when the caller has sent too many; it says when to send the request again.
        """
        if (rate := request.operation.rate) is not None:
            require_rate(caller_of(request.actor), rate)
        return True


class ConductorView(ApiView):
    """Base class of views. The HTTP method selects the handler; exceptions become responses in Conductor's format.

    A handler that returns nothing has the empty reply of its operation.
    """

    operations: ClassVar[Mapping[str, ApiOperation]] = {}
    """The operation of each method, which decorates its handler. A method without one is for administrators only.

    A view whose handlers are those of another one assigns it.
    """
    needs_login: Any = True
    """False for an address that checks no caller, such as a signed link."""
    authentication_classes = (CallerAuthentication,)
    permission_classes = (OperationPermission,)
    throttle_classes = (QuotaThrottle,)
    parser_classes = (JsonParser,)
    renderer_classes = (JsonRenderer, PlainTextRenderer)
    request_class = ConductorRequest

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        handlers = {name: vars(cls)[name] for name in HANDLED_METHODS if name in vars(cls)}
        declared = {name: each.operation for name, each in handlers.items() if hasattr(each, "operation")}
        cls.operations = vars(cls).get("operations", {**cls.operations, **declared})

    @classmethod
    def operation(cls, method: str) -> ApiOperation:
        """Return the operation of a method."""
        return cls.operations.get(method, UNDECLARED)

    @classmethod
    def render_error(cls, request: HttpRequest, error: Exception) -> HttpResponse:
        """Return the response to an error before the view is called, in Conductor's format."""
        return exception_handler(error, {"request": request, "view": cls()})

    def setup(self, request: HttpRequest, *args: object, **kwargs: object) -> None:
        """Store the request and its query parameters."""
        super().setup(request, *args, **kwargs)
        request.query = QueryParameters(request)  # type: ignore[attr-defined]

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Dispatch as the framework does, on behalf of the caller."""
        with acting_as(lambda: self.request.actor) if self.needs_login else nullcontext():
            return super().dispatch(request, *args, **clean_path_parameters(request, kwargs))

    def initialize_request(self, request: HttpRequest, *args: object, **kwargs: object) -> ConductorRequest:
        """Return the request for the handler, with its operation."""
        made = super().initialize_request(request, *args, **kwargs)
        made.operation = self.operation(http_method(request).lower())
        return made

    def initial(self, request: ConductorRequest, *args: object, **kwargs: object) -> None:
        """Authenticate, authorize and count the caller, if the address checks one."""
        if self.needs_login:
            super().initial(request, *args, **kwargs)

    def http_method_not_allowed(self, request: ConductorRequest, *args: object, **kwargs: object) -> HttpResponse:
        """Refuse a method that the view does not have.

        Raises:
            MethodNotAllowed: always.
        """
        raise MethodNotAllowed(request.method, f"Request method '{request.method}' is not supported")

    def finalize_response(
        self, request: ConductorRequest, response: HttpResponse | None, *args: object, **kwargs: object
    ) -> HttpResponse:
        """Complete the reply, and grant the caller access to what the request has created."""
        try:
            if response is None:
                response = NoContent() if request.operation.reply == NO_CONTENT else EmptyOk()
            response = super().finalize_response(request, response, *args, **kwargs)
            is_done = not getattr(response, "exception", False)
            if is_done and request.created_targets and request.actor.user_id is not None:
                grant_to_creator(request.actor, request.created_targets)
        except Exception as error:
            response = self.handle_exception(error)
        # Replies depend on the caller's permissions and can contain secrets.
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    def get_exception_handler(self) -> Callable[..., HttpResponse]:
        """Return the function that renders errors, whatever the settings of another Django project are."""
        return exception_handler

    def find_handler(self, request: HttpRequest | Request) -> Callable[..., HttpResponse] | None:
        """Return the handler of a request, None if the view does not have its method."""
        name = http_method(request).lower()
        return getattr(self, name, None) if name in HANDLED_METHODS else None

    @property
    def allowed_methods(self) -> list[str]:
        names = [name.upper() for name in HANDLED_METHODS if hasattr(self, name)]
        return [*names, "HEAD"] if "GET" in names else names


UNDECLARED = ApiOperation("", reply=None)
HANDLED_METHODS = ("get", "post", "put", "delete")


class WorkerView(ConductorView):
    """Base class of the polls and reports of workers, which are almost all requests of a busy server.

    It checks what other views check, without the framework's request, negotiation and policy objects. This saves 16 µs
    of 33 µs around the handler of a poll, and 20 µs of 43 µs around that of a report (CPU time, median). Its requests
    also pass by Django's handler (`web/middleware.py`), which saves 47 µs of 156 µs of a report without its
    command.
    """

    serves_workers = True

    def dispatch(self, request: WorkerRequest, *args: object, **kwargs: object) -> HttpResponse:
        try:
            kwargs = clean_path_parameters(request, kwargs)
            operation = self.operation(http_method(request).lower())
            request.actor = authenticate(request, changes_state=operation.changes_state)
            handler = self.find_handler(request) or self.http_method_not_allowed
            operation.permission.check(request, kwargs)
            if operation.rate is not None:
                require_rate(caller_of(request.actor), operation.rate)
            with acting_as(lambda: request.actor):
                reply = handler(request, **kwargs)
            render_errors(reply, self.handle_exception)
        except Exception as error:
            reply = self.handle_exception(error)
        reply.headers.setdefault("Cache-Control", "no-store")
        return reply


class UnknownAddress(ConductorView):
    """Every other address under /api, for every method."""

    schema = None

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        return self.handle_exception(NotFound(f"No endpoint {request.method} {request.path}."))
