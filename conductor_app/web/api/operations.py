"""Operations of the API, their replies and their errors.

The handlers of a view declare their operations, which authorization and the OpenAPI document read. A reply is JSON,
plain text, or has no body. Errors have Conductor's format: status, message, and all validation errors of a document
(api §3.17). Findings are in a header: clients parse the bodies of these replies, most of which are empty, and ignore
headers that they do not know.
"""

import json
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson
from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import DataError
from django.http import Http404, HttpResponse, HttpResponseBase
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.renderers import BaseRenderer

from ...access.quotas import Rate
from ...core import errors
from ...core.document.fields import FieldTable, NamedTable, Reader
from ...core.expressions import java_text
from ...core.validation.findings import LintFinding
from ...db.fields import dumps
from ...db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ..client_views import log_transient_error
from .permissions import ADMINISTRATORS_ONLY, PermissionRule


class JsonRenderer(BaseRenderer):
    """A document as JSON."""

    media_type, format, charset = "application/json", "json", None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        try:
            return orjson.dumps(data)
        except TypeError:
            # Integers beyond 64 bits, or nested deeper than orjson goes.
            return (dumps(data) or "null").encode()


class PlainTextRenderer(BaseRenderer):
    """A text without quotes, as clients expect ids."""

    media_type, format, charset = "text/plain;charset=UTF-8", "txt", None

    def render(self, data: str, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return data.encode()


JSON, TEXT = JsonRenderer(), PlainTextRenderer()


def Json(document: Any, status: int = 200) -> HttpResponse:
    """Return a response with a JSON document."""
    return _build_response(JSON.render(document), JSON.media_type, status)


def PlainText(text: str) -> HttpResponse:
    """Return a response with plain text."""
    return _build_response(TEXT.render(text), TEXT.media_type, 200)


def EmptyOk() -> HttpResponse:
    """Return status 200 without a body. A JSON content type here makes a client fail (api §8.1)."""
    response = _build_response(b"", "", 200)
    del response.headers["Content-Type"]
    return response


def NoContent() -> HttpResponse:
    """Return status 204 without a body and without a content type."""
    response = HttpResponse(status=204)
    del response.headers["Content-Type"]
    return response


def _build_response(body: bytes, content_type: str, status: int) -> HttpResponse:
    response = HttpResponse(body, content_type=content_type or None, status=status)
    response.headers["Content-Length"] = str(len(body))
    return response


log = logging.getLogger(__name__)
RETRYABLE_STATUSES = (429, 503)
HOST_NAME = socket.gethostname()

STATUS_BY_ERROR: dict[type[Exception], int] = {
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.PayloadTooLarge: 413,
    errors.UnsupportedMediaType: 415,
    errors.Invalid: 400,
    errors.StepRefused: 400,
    errors.Busy: 503,
    errors.QuotaExceeded: 429,
    errors.QueueFull: 429,
    errors.Forbidden: 403,
    errors.Unauthenticated: 401,
    MethodNotAllowed: 405,
    SuspiciousOperation: 400,
    Http404: 404,
    # Forms that the check of the CSRF token cannot read.
    BadRequest: 400,
    MultiPartParserError: 400,
    DataError: 400,
    # The client has disconnected while it sent its request.
    UnreadablePostError: 400,
}
"""The status of each error. The first class in the method resolution order of the error that has an entry applies."""


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    unlisted = 503 if is_transient(error) else 500
    return next((STATUS_BY_ERROR[kind] for kind in type(error).__mro__ if kind in STATUS_BY_ERROR), unlisted)


def exception_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Return the response to an exception that a view raised."""
    status = status_of(error)
    if status == 500:
        return _internal_error(error, context)
    if status == 503:
        log_transient_error(context["request"], error)
        discard_broken_connection()
    body = {"status": status, "message": _message_of(error), "retryable": status in RETRYABLE_STATUSES}
    if isinstance(error, errors.ValidationFailed):
        body["validationErrors"] = [_validation_error_document(each) for each in error.validation_errors]
    else:
        body["instance"] = HOST_NAME
    if isinstance(error, errors.RequestRefused) and "code" in error.facts:
        # Clients fetch a new token when they read one of two words here (api §7).
        body["error"] = error.facts["code"]
    reply = Json(body, status)
    # Django would log a warning for every missing object that a client requests.
    reply._has_been_logged = True  # type: ignore[attr-defined]  # an attribute of Django's own
    if status == 503:
        reply.headers["Retry-After"] = "1"
    if isinstance(error, errors.QuotaExceeded):
        reply.headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, MethodNotAllowed):
        reply.headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return reply


def _message_of(error: Exception) -> str:
    if isinstance(error, errors.RequestRefused):
        return error.message
    if isinstance(error, DisallowedHost):
        return "The server does not answer for the host in this address. An administrator can add it to ALLOWED_HOSTS."
    if isinstance(error, Http404):
        return str(error)
    if isinstance(error, DataError):
        return "A value in the request cannot be stored: a text is too long, or a number is too large."
    if is_transient(error):
        return f"{describe_transient(error)} Send the request again."
    return str(getattr(error, "detail", "")) or "The request is refused."


def _validation_error_document(validation_error: errors.ValidationError) -> dict[str, str]:
    found = {"path": validation_error.path.rstrip("."), "message": validation_error.message}
    value = validation_error.value
    if isinstance(value, str | int | float):
        found["invalidValue"] = java_text(value)[:500]
    return found


def _internal_error(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Log an internal error and return a response without its details."""
    request = context["request"]
    log.exception("%s %s failed", request.method, request.path)
    django_request = getattr(request, "_request", request)
    got_request_exception.send(sender=type(context["view"]), request=django_request)
    message = "The server failed to answer this request; its log says why."
    return Json({"status": 500, "message": message, "instance": HOST_NAME, "retryable": False}, 500)


HEADER = "Conductor-Findings"
MAX_SIZE = 2_000
"""The maximum size of the header in bytes. Proxies limit all headers of a reply to 4 or 8 kB."""
MAX_TEXT_SIZE = 800
"""The maximum size of the message and of the path of a finding that exceeds the header alone."""


def finding_document(finding: LintFinding) -> dict[str, str]:
    """Return a lint finding on a valid definition: severity, code, position and message."""
    return {
        "severity": finding.severity,
        "kind": finding.kind,
        "path": finding.path,
        "message": finding.message,
    }


def add_findings(response: HttpResponse, found: Sequence[LintFinding]) -> HttpResponse:
    """Return the response with the findings in its header: their number, and as many as there is room for."""
    if found:
        response.headers[HEADER] = _render([finding_document(each) for each in found])
    return response


def _render(documents: list[dict[str, Any]]) -> str:
    shown: list[dict[str, Any]] = []
    text = ""
    for each in documents:
        longer = json.dumps({"count": len(documents), "findings": [*shown, each]})
        if text and len(longer) > MAX_SIZE:
            break
        shown.append(
            each
            if len(longer) <= MAX_SIZE
            else {**each, "message": _shorten(each["message"]), "path": _shorten(each["path"])}
        )
        text = json.dumps({"count": len(documents), "findings": shown})
    return text


def _shorten(text: str) -> str:
    """Return as much of a text as fits. In JSON as ASCII, a character has up to 12 bytes."""
    size = 0
    for at, character in enumerate(text):
        size += len(json.dumps(character)) - 2
        if size > MAX_TEXT_SIZE:
            return text[:at]
    return text


class ArrayOf(NamedTuple):
    """A list of documents with these fields."""

    table: FieldTable


class ArraysByKey(NamedTuple):
    """An object whose values are lists of documents with these fields."""

    table: NamedTable


PLAIN_TEXT, BINARY, EMPTY_REPLY, NO_CONTENT = "bare text", "bytes", "an empty reply", "204"
Shape = FieldTable | ArrayOf | ArraysByKey | Reader | str
Handler = TypeVar("Handler", bound=Callable[..., HttpResponseBase | None])


class ApiOperation(NamedTuple):
    """One method of one address, as a decorator of its handler.

    `permission`: what the caller needs; administrators only unless it is declared. `reply`, `body`: the shape of the
    response and of the request; an operation whose reply is None is not published in the OpenAPI document.
    `query`: parameters with their types, required ones with an exclamation mark. `changes_state`: a GET that changes
    something; a browser session may send it only with a CSRF token. `rate`: the quota of callers that it counts for.
    `reports_findings`: a header of the reply has the findings on the document that was sent.
    `empty_when`: when the reply has status 200 and neither a body nor a type, as the original's.
    `other_reply`: the shape of a reply with the same status and another content type.
    """

    summary: str
    permission: PermissionRule = ADMINISTRATORS_ONLY
    reply: Shape | None = EMPTY_REPLY
    body: Shape | None = None
    query: Mapping[str, type] = {}
    can_be_empty: bool = False
    empty_when: str = ""
    status: int = 200
    changes_state: bool = False
    rate: Rate | None = None
    reports_findings: bool = False
    other_reply: Shape | None = None

    def __call__(self, handler: Handler) -> Handler:
        """Return the handler with its operation, which `ConductorView` reads."""
        handler.operation = self  # type: ignore[attr-defined]  # an attribute of this project
        return handler


POLL_QUERY = {"workerid": str, "domain": str}
WAIT_QUERY = {
    "requestId": str,
    "waitUntilTaskRef": str,
    "waitForSeconds": int,
    "consistency": str,
    "returnStrategy": str,
}
INCLUDE_QUERY = {"includeClosed": bool, "includeTasks": bool}
TASK_TYPE_QUERY = {"taskType!": str}
QUEUE_QUERY = {"domain": str, "executionNamespace": str, "isolationGroupId": str}
FILE_LINK_QUERY = {"part": str, "op": str, "exp": int, "sig": str}
LINK_QUERY = {"expires!": int, "signature!": str}
VERSION_QUERY = {"version": int}
REASON_QUERY = {"reason": str}
CLAIM_QUERY = {"overrideAssignment": bool, "withTemplate": bool}
COMPLETE_QUERY = {"complete": bool}
REMOVAL_QUERY = {"archiveWorkflow": bool, "cascade": bool}
PAGE_QUERY = {"start": int, "size": int, "sort": str, "freeText": str}
SEARCH_QUERY = {"start": int, "size": int, "sort": str, "freeText": str, "query": str}
RUN_SEARCH_QUERY = SEARCH_QUERY | {"classifier": str, "topLevelOnly": bool, "queryId": str, "skipCache": bool}
