"""Base class of the views of Conductor's API, with little overhead between the request and its handler."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.views import APIView

from ...access.authentication import Actor, acting_as, authenticate
from ...access.commands.users import grant_to_creator
from ...access.quotas import caller_of, require_rate
from ...core.errors import NotFound
from ..client_views import ClientView, http_method, render_errors
from .operations import ApiOperation, exception_handler
from .requests import SLASH_MARK, QueryParameters, unmark_slashes


class ConductorRequest(HttpRequest):
    """The request that a view receives: Django's request with the actor and the query parameters."""

    actor: Actor
    query: QueryParameters
    created_targets: Sequence[tuple[str, str]]
    """Objects that the request creates: (target type, name)."""


class ConductorView(ClientView, APIView):
    """Base class of views. The HTTP method selects the handler; exceptions become responses in Conductor's format.

    The framework's steps before a handler (negotiation, parsers, authenticators, throttles) have a fixed result here
    and are skipped: they took longer than the query of a claim.
    """

    operations: ClassVar[Mapping[str, ApiOperation]] = {}
    """The operation of each method. A method that is not declared is for administrators only."""
    needs_login = True
    authentication_classes = permission_classes = throttle_classes = parser_classes = renderer_classes = ()

    @classmethod
    def render_error(cls, request: HttpRequest, error: Exception) -> HttpResponse:
        """Return the response to an error before the view is called, in Conductor's format."""
        return exception_handler(error, {"request": request, "view": cls()})

    def dispatch(self, request: ConductorRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            request.query = QueryParameters(request)
            if "\0" in request.path_info:
                # PostgreSQL cannot store NUL in text, nor compare with it.
                kwargs = {
                    name: value.replace("\0", "") if isinstance(value, str) else value for name, value in kwargs.items()
                }
            if SLASH_MARK in request.path_info:
                kwargs = unmark_slashes(kwargs)
            reply = self._authorize_and_handle(request, kwargs)
            render_errors(reply, self._render_error)
        except Exception as error:
            reply = self._render_error(error)
        # Replies depend on the caller's permissions and can contain secrets.
        reply.headers.setdefault("Cache-Control", "no-store")
        return reply

    def _authorize_and_handle(self, request: ConductorRequest, kwargs: dict[str, str]) -> HttpResponse:
        """Authenticate and authorize the caller, then call the handler."""
        if not self.needs_login:
            return self._find_handler(request)(request, **kwargs)
        operation = self.operation(http_method(request).lower())
        request.actor = authenticate(request, changes_state=operation.changes_state)
        handler = self._find_handler(request)
        operation.permission.check(request, kwargs)
        if operation.rate is not None:
            require_rate(caller_of(request.actor), operation.rate)
        with acting_as(lambda: request.actor):
            reply = handler(request, **kwargs)
        if request.actor.user_id is not None and getattr(request, "created_targets", ()):
            grant_to_creator(request.actor, request.created_targets)
        return reply

    @classmethod
    def operation(cls, method: str) -> ApiOperation:
        """Return the operation of a method."""
        return cls.operations.get(method, UNDECLARED)

    def _find_handler(self, request: HttpRequest) -> Callable[..., HttpResponse]:
        name = http_method(request).lower()
        handler = getattr(self, name, None) if name in HANDLED_METHODS else None
        if handler is None:
            raise MethodNotAllowed(request.method, f"Request method '{request.method}' is not supported")
        return handler

    def get_exception_handler(self) -> Callable[..., HttpResponse]:
        return exception_handler

    def _render_error(self, error: Exception) -> HttpResponse:
        return self.get_exception_handler()(error, {"request": self.request, "view": self})

    @property
    def allowed_methods(self) -> list[str]:
        names = [name.upper() for name in HANDLED_METHODS if hasattr(self, name)]
        return [*names, "HEAD"] if "GET" in names else names


UNDECLARED = ApiOperation("")
HANDLED_METHODS = ("get", "post", "put", "delete")


class UnknownAddress(ConductorView):
    """Every other address under /api, for every method."""

    schema = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        error = NotFound(f"No endpoint {request.method} {request.path}.")
        return self.get_exception_handler()(error, {"request": request, "view": self})
