"""TaskclusterView: one address of the dialect; the table `methods` names what each verb of it is called there."""

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import classonlymethod
from django.views import View

from ...access import clients
from . import access, body, patterns
from .errors import answer
from .replies import Empty, Json

ACROSS_ORIGINS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "OPTIONS, GET, HEAD, POST, PUT, DELETE",
    "Access-Control-Allow-Headers": "X-Requested-With, Content-Type, Authorization, Accept, Origin, Cache-Control",
    "Access-Control-Expose-Headers": "x-taskcluster-artifact-storage-type, x-for-trace-id, x-for-request-id",
    "Access-Control-Max-Age": "900",
}

TRACE_ID = re.compile(r"[!-~]{1,128}")
"""The trace ids that are sent back: any visible ASCII, as slug ids and UUIDs are; another one gets a new id."""


class TaskclusterRequest(HttpRequest):
    """What a handler is given: Django's request, with who calls and what was asked, checked already."""

    caller: access.Caller
    method_name: str
    params: Mapping[str, str]
    options: Mapping[str, str]
    document: Any
    """The body, with its defaults."""
    require: Callable[..., None]
    """Raises Forbidden unless the caller holds what the method requires, given these facts."""


class TaskclusterView(View):
    """One address: the verb names the handler, whatever a handler raises becomes the dialect's error."""

    methods: Mapping[str, str] = {}
    options_known: tuple[str, ...] = ()

    @classonlymethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., HttpResponse]:
        view = super().as_view(**initkwargs)
        view.csrf_exempt = True  # type: ignore[attr-defined]
        return view

    def dispatch(self, request: TaskclusterRequest, *args: Any, **params: Any) -> HttpResponse:
        if request.method == "OPTIONS":
            return _marked(request, Empty())
        method = self.methods.get(verb_of(request))
        if method is None:
            return not_found(request)
        payload = None
        try:
            payload = body.read(request, method)
            reply = self._answer(request, method, params, payload)
        except Exception as error:
            reply = answer(error, request, method, params, payload)
        return _marked(request, reply)

    def _answer(self, request: TaskclusterRequest, method: str, params: dict[str, str], payload: Any) -> HttpResponse:
        """Ask who it is and what that one may, check what was asked, then let the handler answer."""
        caller = access.caller_of(request) if method not in access.PUBLIC else access.Caller("anonymous")
        if method in access.AT_ONCE:
            access.require(caller, access.AT_ONCE[method], params)
        patterns.check_params(params)
        request.options = patterns.options(request.META.get("QUERY_STRING", ""), self.options_known)
        request.document = body.validated(method, payload)
        request.caller, request.method_name, request.params = caller, method, params

        def require(**facts: Any) -> None:
            access.require(caller, access.LATER[method], {**params, **facts})

        request.require = require
        return getattr(self, verb_of(request).lower())(request)


def verb_of(request: HttpRequest) -> str:
    """What is asked for; HEAD is GET, of which the web server sends the headers."""
    return "GET" if request.method == "HEAD" else str(request.method)


def not_found(request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """Every address that there is not."""
    return _marked(request, Json({"error": "Not found"}, 404))


not_found.csrf_exempt = True  # type: ignore[attr-defined]


def _marked(request: HttpRequest, reply: HttpResponse) -> HttpResponse:
    """The reply with the ids by which it can be followed through logs."""
    trace = request.META.get("HTTP_X_TASKCLUSTER_TRACE_ID", "")
    reply.headers["x-for-trace-id"] = trace if TRACE_ID.fullmatch(trace) else secrets.token_hex(16)
    reply.headers["x-for-request-id"] = secrets.token_hex(16)
    if "HTTP_ORIGIN" in request.META and not clients.is_access_open():
        # Whoever signs may do so in any page; an open server hears its own pages only.
        for name, value in ACROSS_ORIGINS.items():
            reply.headers[name] = value
    return reply
