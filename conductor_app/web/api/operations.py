"""Error responses in Conductor's format: status, message, and all validation errors of a document (api §3.17)."""

import logging
import socket
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import DataError
from django.http import Http404, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from rest_framework.exceptions import MethodNotAllowed

from ...core.errors import (
    Busy,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PayloadTooLarge,
    QueueFull,
    QuotaExceeded,
    RequestRefused,
    StepRefused,
    Unauthenticated,
    UnsupportedMediaType,
    ValidationError,
    ValidationFailed,
)
from ...core.expressions import java_text
from ...transient_errors import describe_transient, discard_broken_connection, is_transient
from ..fault_log import log_transient_error
from .replies import Json

log = logging.getLogger(__name__)
RETRYABLE_STATUSES = (429, 503)
HOST_NAME = socket.gethostname()

STATUS_BY_ERROR: dict[type[Exception], int] = {
    NotFound: 404,
    Conflict: 409,
    PayloadTooLarge: 413,
    UnsupportedMediaType: 415,
    Invalid: 400,
    StepRefused: 400,
    Busy: 503,
    QuotaExceeded: 429,
    QueueFull: 429,
    Forbidden: 403,
    Unauthenticated: 401,
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
    if isinstance(error, ValidationFailed):
        body["validationErrors"] = [_validation_error_document(each) for each in error.validation_errors]
    else:
        body["instance"] = HOST_NAME
    if isinstance(error, RequestRefused) and "code" in error.facts:
        # Clients fetch a new token when they read one of two words here (api §7).
        body["error"] = error.facts["code"]
    reply = Json(body, status)
    reply._has_been_logged = True  # logged by Django as a warning for every missing object that a client requests
    if status == 503:
        reply.headers["Retry-After"] = "1"
    if isinstance(error, QuotaExceeded):
        reply.headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, MethodNotAllowed):
        reply.headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return reply


def _message_of(error: Exception) -> str:
    if isinstance(error, RequestRefused):
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


def _validation_error_document(validation_error: ValidationError) -> dict[str, str]:
    found = {"path": validation_error.path.rstrip("."), "message": validation_error.message}
    value = validation_error.value
    if isinstance(value, str | int | float):
        found["invalidValue"] = java_text(value)[:500]
    return found


def _internal_error(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Log an internal error and return a response without its details."""
    request = context["request"]
    log.exception("%s %s failed", request.method, request.path)
    got_request_exception.send(sender=type(context["view"]), request=request)
    message = "The server failed to answer this request; its log says why."
    return Json({"status": 500, "message": message, "instance": HOST_NAME, "retryable": False}, 500)
