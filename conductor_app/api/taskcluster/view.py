"""Base class of views. The table `methods` maps each HTTP method to a method of Taskcluster's API."""

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import classonlymethod

from ...access import clients
from ...engine.access.quota_checks import require_rate
from ..client_views import ClientView, http_method
from ..waiting_replies import render_errors
from . import identifier_patterns, method_scopes, request_body
from .errors import error_response
from .replies import Json, NoContent

CORS_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "OPTIONS, GET, HEAD, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "X-Requested-With, Content-Type, Authorization, Accept, Origin, Cache-Control",
    "Access-Control-Expose-Headers": "x-taskcluster-artifact-storage-type, x-for-trace-id, x-for-request-id",
    "Access-Control-Max-Age": "900",
}

TRACE_ID_PATTERN = re.compile(r"[!-~]{1,128}")
"""The trace ids that are sent back: any visible ASCII, as slug ids and UUIDs are; another one gets a new id."""


class TaskclusterRequest(HttpRequest):
    """The request that a view receives: Django's request with the caller and the validated parameters."""

    caller: method_scopes.Caller
    params: Mapping[str, str]
    options: Mapping[str, str]
    document: Any
    """The body, with its defaults."""
    require: Callable[..., None]
    """Raise Forbidden unless the caller has the scopes that the method requires, given these facts."""


class TaskclusterView(ClientView):
    """Base class of views. Exceptions of handlers become error responses in Taskcluster's format."""

    methods: Mapping[str, method_scopes.ApiMethod] = {}
    known_options: tuple[str, ...] = ()

    @classonlymethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., HttpResponse]:
        view = super().as_view(**initkwargs)
        view.csrf_exempt = True  # type: ignore[attr-defined]
        return view

    def dispatch(self, request: TaskclusterRequest, *args: Any, **params: Any) -> HttpResponse:
        if request.method == "OPTIONS":
            return _add_request_ids(request, NoContent())
        method = self.methods.get(http_method(request))
        if method is None:
            return not_found(request)
        payload = None
        try:
            payload = request_body.read_json(request, method.name)
            reply = self._authorize_and_handle(request, method, params, payload)
            render_errors(reply, lambda error: error_response(error, request, method.name, params, payload))
        except Exception as error:
            reply = error_response(error, request, method.name, params, payload)
        return _add_request_ids(request, reply)

    def _authorize_and_handle(
        self, request: TaskclusterRequest, method: method_scopes.ApiMethod, params: dict[str, str], payload: Any
    ) -> HttpResponse:
        """Authenticate and authorize the caller, validate the request, then call the handler.

        Raises:
            TypeError: when a method without declared scopes requires some.
        """
        caller = method_scopes.Caller("anonymous") if method.is_public else method_scopes.authenticate(request)
        if method.scopes is not None:
            method_scopes.require_scopes(caller, method.scopes, params)
        identifier_patterns.check_params(params)
        request.options = identifier_patterns.parse_options(request.META.get("QUERY_STRING", ""), self.known_options)
        request.document = request_body.validate_body(method.name, payload)
        request.caller, request.params = caller, params
        if method.rate is not None:
            require_rate(method_scopes.quota_caller(caller), method.rate)

        def require(**facts: Any) -> None:
            if method.scopes_of_facts is None:
                raise TypeError(f"{method.name} declares no scopes of facts.")
            method_scopes.require_scopes(caller, method.scopes_of_facts, {**params, **facts})

        request.require = require
        return getattr(self, http_method(request).lower())(request)


def not_found(request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """Return 404 for every unknown address."""
    return _add_request_ids(request, Json({"error": "Not found"}, 404))


not_found.csrf_exempt = True  # type: ignore[attr-defined]


def _add_request_ids(request: HttpRequest, reply: HttpResponse) -> HttpResponse:
    """Add the request ids to the response, by which logs can be searched."""
    trace = request.META.get("HTTP_X_TASKCLUSTER_TRACE_ID", "")
    reply.headers["x-for-trace-id"] = trace if TRACE_ID_PATTERN.fullmatch(trace) else secrets.token_hex(16)
    reply.headers["x-for-request-id"] = secrets.token_hex(16)
    if "HTTP_ORIGIN" in request.META and not clients.is_access_open():
        # Signed requests may come from any web page; a server without authentication accepts only its own pages.
        for name, value in CORS_HEADERS.items():
            reply.headers[name] = value
    return reply
