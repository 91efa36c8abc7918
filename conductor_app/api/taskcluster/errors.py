"""Error responses in Taskcluster's format: a code, a status, and a message with the request (taskcluster §1.1)."""

import logging
import secrets
from collections.abc import Mapping
from typing import Any

from django.core.signals import got_request_exception
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError

from ... import clock
from ...core.errors import (
    Busy,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    QuotaExceeded,
    Unauthenticated,
    UnsupportedMediaType,
)
from ...insight.standalone.task_status import format_timestamp
from ...transient_errors import describe_transient, discard_broken_connection, is_transient
from ..fault_log import log_transient_error
from ..refused_requests import taskcluster_error
from .replies import Json

log = logging.getLogger(__name__)


class MalformedPayload(Invalid):
    """Raised when the body is not JSON, or its content type is not that of JSON."""


class InvalidRequestArguments(Invalid):
    """Raised when a part of the path, or a query parameter, is invalid."""


class InputValidationError(Invalid):
    """Raised when the body does not match the schema of the method."""


class InputTooLarge(Invalid):
    """Raised when the body is larger than the server accepts."""


class NoMatchingMethod(Invalid):
    """Raised when the client supports none of the download methods of the object."""


CODE_BY_ERROR: dict[type[Exception], tuple[str, int]] = {
    MalformedPayload: ("MalformedPayload", 400),
    InvalidRequestArguments: ("InvalidRequestArguments", 400),
    InputValidationError: ("InputValidationError", 400),
    InputTooLarge: ("InputTooLarge", 413),
    NoMatchingMethod: ("NoMatchingMethod", 406),
    UnsupportedMediaType: ("InputError", 415),
    Invalid: ("InputError", 400),
    DataError: ("InputError", 400),
    Unauthenticated: ("AuthenticationFailed", 401),
    Forbidden: ("InsufficientScopes", 403),
    Expired: ("ResourceExpired", 410),
    NotFound: ("ResourceNotFound", 404),
    Conflict: ("RequestConflict", 409),
    # A code of this server: the original limits no caller.
    QuotaExceeded: ("TooManyRequests", 429),
    # Clients repeat requests that get this status.
    Busy: ("InternalServerError", 503),
    # The client has disconnected while it sent its request.
    UnreadablePostError: ("MalformedPayload", 400),
}
"""The code and status of each error. The first class in its method resolution order that has an entry applies."""


def error_response(
    error: Exception, request: HttpRequest, method: str, params: Mapping[str, Any], payload: Any
) -> HttpResponse:
    """Return the response to an exception that a method raised."""
    unlisted = ("InternalServerError", 503 if is_transient(error) else 500)
    code, status = next((CODE_BY_ERROR[kind] for kind in type(error).__mro__ if kind in CODE_BY_ERROR), unlisted)
    message = str(error) if status != 500 else _report_incident(request, method)
    if isinstance(error, DataError):
        message = "A value in the request cannot be stored: a text is too long, or a number is too large."
    if status == 503:
        log_transient_error(request, error)
        discard_broken_connection()
        message = error.message if isinstance(error, Busy) else f"{describe_transient(error)} Send the request again."
    time = format_timestamp(clock.now())
    reply = Json(taskcluster_error(code, status, message, time, method, params, payload), status)
    if status == 401:
        reply.headers["www-authenticate"] = "hawk"
    if status == 503:
        reply.headers["Retry-After"] = "1"
    if isinstance(error, QuotaExceeded):
        reply.headers["Retry-After"] = str(error.retry_after)
    reply._has_been_logged = True  # type: ignore[attr-defined]  # by Django, as a warning
    return reply


def _report_incident(request: HttpRequest, method: str) -> str:
    """Log an internal error, and return the number that the client receives instead of details."""
    incident = secrets.token_hex(8)
    log.exception("%s failed", method, extra={"incident": incident})
    got_request_exception.send(sender=error_response, request=request)
    return f"Internal Server Error, incidentId {incident}."
