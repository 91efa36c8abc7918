"""The outermost middleware, which gives each request an id and a span."""

import logging
import re
import secrets
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from django.http import HttpRequest, HttpResponse

from ..core.primitives import ID_PATTERN
from . import log_context, spans

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
            with spans.span(str(request.method), {"request_id": id}, _trace_headers(request.META)) as span:
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
