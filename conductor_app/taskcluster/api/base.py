"""Requests and replies of all services: bodies, errors, identifiers, timestamps and pages of lists.

The schema of a method validates the body of its requests and adds defaults. An error has a code, a status, and a
message with the request (taskcluster §1.1). Identifiers have patterns (taskcluster §1.2), and a page of a list begins
after its `continuationToken` (taskcluster §1.3). Uploads are read once, in chunks.
"""

import base64
import io
import json
import logging
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import IO, Any, NamedTuple, NoReturn, cast
from urllib.parse import parse_qsl

from django.core.files.base import File
from django.core.signals import got_request_exception
from django.db import DataError
from django.http import HttpRequest, HttpResponse, RawPostDataException
from django.http.request import UnreadablePostError

from ...core import errors
from ...core.primitives import JsonValue
from ...db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ...utils import clock
from ...utils.json_values import find_unreadable, is_too_deep, loads
from ...web.api.operations import JSON
from ...web.api.requests import decompress, to_utf8, without_mark
from ...web.client_views import log_transient_error, taskcluster_error
from ..queries import format_timestamp
from .schemas import SCHEMAS, SLUGID_PATTERN, schema_errors

NO_CACHE = "no-store no-cache must-revalidate"


def Json(document: Any, status: int = 200) -> HttpResponse:
    """Return a JSON document that must not be cached."""
    body = JSON.render(document)
    reply = HttpResponse(body, content_type="application/json", status=status)
    reply.headers["Content-Length"] = str(len(body))
    reply.headers["Cache-Control"] = NO_CACHE
    return reply


def NoContent() -> HttpResponse:
    """Return an empty response."""
    return HttpResponse(status=204, headers={"Cache-Control": NO_CACHE})


log = logging.getLogger(__name__)


class MalformedPayload(errors.Invalid):
    """Raised when the body is not JSON, or its content type is not that of JSON."""


class InvalidRequestArguments(errors.Invalid):
    """Raised when a part of the path, or a query parameter, is invalid."""


class InputValidationError(errors.Invalid):
    """Raised when the body does not match the schema of the method."""


class InputTooLarge(errors.Invalid):
    """Raised when the body is larger than the server accepts."""


class NoMatchingMethod(errors.Invalid):
    """Raised when the client supports none of the download methods of the object."""


CODE_BY_ERROR: dict[type[Exception], tuple[str, int]] = {
    MalformedPayload: ("MalformedPayload", 400),
    InvalidRequestArguments: ("InvalidRequestArguments", 400),
    InputValidationError: ("InputValidationError", 400),
    InputTooLarge: ("InputTooLarge", 413),
    NoMatchingMethod: ("NoMatchingMethod", 406),
    errors.UnsupportedMediaType: ("InputError", 415),
    errors.Invalid: ("InputError", 400),
    DataError: ("InputError", 400),
    errors.Unauthenticated: ("AuthenticationFailed", 401),
    errors.Forbidden: ("InsufficientScopes", 403),
    errors.Expired: ("ResourceExpired", 410),
    errors.NotFound: ("ResourceNotFound", 404),
    errors.Conflict: ("RequestConflict", 409),
    # A code of this server: the original limits no caller.
    errors.QuotaExceeded: ("TooManyRequests", 429),
    # Clients repeat requests that get this status.
    errors.Busy: ("InternalServerError", 503),
    # The client has disconnected while it sent its request.
    UnreadablePostError: ("MalformedPayload", 400),
}
"""The code and status of each error. The first class in its method resolution order that has an entry applies."""


def error_response(
    error: Exception, request: HttpRequest, method: str, params: Mapping[str, Any], payload: JsonValue
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
        message = (
            error.message if isinstance(error, errors.Busy) else f"{describe_transient(error)} Send the request again."
        )
    time = format_timestamp(clock.now())
    reply = Json(taskcluster_error(code, status, message, time, method, params, payload), status)
    if status == 401:
        reply.headers["www-authenticate"] = "hawk"
    if status == 503:
        reply.headers["Retry-After"] = "1"
    if isinstance(error, errors.QuotaExceeded):
        reply.headers["Retry-After"] = str(error.retry_after)
    reply._has_been_logged = True  # type: ignore[attr-defined]  # by Django, as a warning
    return reply


def _report_incident(request: HttpRequest, method: str) -> str:
    """Log an internal error, and return the number that the client receives instead of details."""
    incident = secrets.token_hex(8)
    log.exception("%s failed", method, extra={"incident": incident})
    got_request_exception.send(sender=error_response, request=request)
    return f"Internal Server Error, incidentId {incident}."


QUEUE_PATTERN = r"^[a-zA-Z0-9-_]{1,38}/[a-z]([-a-z0-9]{0,36}[a-z0-9])?$"
NAME_PATTERN = r"^[a-zA-Z0-9-_]{1,38}$"

PATTERN_BY_PARAM = {
    "taskId": SLUGID_PATTERN,
    "taskGroupId": SLUGID_PATTERN,
    "runId": r"^[1-9]*[0-9]+$",
    "taskQueueId": QUEUE_PATTERN,
    "provisionerId": NAME_PATTERN,
    "workerType": NAME_PATTERN,
    "workerGroup": NAME_PATTERN,
    "workerId": NAME_PATTERN,
    "clientId": r"^[A-Za-z0-9!@/:.+|_-]+$",
    "roleId": r"^[\x20-\x7e]+$",
    "objectName": r"^[\x20-\x7e]+$",
    "name": r"^[\x20-\x7e]+$",
}
PATTERN_BY_OPTION = {
    "continuationToken": r"^.*$",
    "limit": r"^[0-9]+$",
    "quarantined": r"^(true|false)$",
    "prefix": r"^[A-Za-z0-9!@/:.+|_-]*$",
}
MAX_LENGTHS = {"name": 1024, "runId": 9}
"""Characters of a part of an address: run numbers are shorter, and databases refuse longer ones."""


def check_params(params: Mapping[str, str]) -> None:
    """Check the path parameters of a request."""
    for name, value in params.items():
        is_too_long = len(value) > MAX_LENGTHS.get(name, len(value))
        if not matches_fully(PATTERN_BY_PARAM[name], value) or is_too_long:
            raise InvalidRequestArguments(
                f"URL parameter '{name}' given as '{value[:100]}' must match {PATTERN_BY_PARAM[name]}"
            )


def parse_options(query: str, known_options: Iterable[str]) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True, errors="replace"))
    options.pop("bewit", None)
    for name, value in options.items():
        if name not in known_options:
            raise InvalidRequestArguments(f"Query string option '{name[:100]}' is unknown.")
        if not matches_fully(PATTERN_BY_OPTION[name], value):
            raise InvalidRequestArguments(f"Query string option '{name}' must match {PATTERN_BY_OPTION[name]}")
    return options


def matches_fully(pattern: str, text: str) -> bool:
    """Return True if the pattern matches the complete text; `$` alone would allow a trailing line break."""
    return re.fullmatch(pattern.removesuffix("$"), text) is not None


MAX_PAGE_SIZE = 1000
PAGE_QUERY_OPTIONS = ("continuationToken", "limit")
"""The options of a list."""


class PageOptions(NamedTuple):
    """The requested page: its size, and the position after which it starts."""

    size: int
    after: tuple[Any, ...]

    def reply(self, name: str, rows: Sequence[Any], position: Callable[[Any], Sequence[Any]], show: Callable) -> dict:
        """Return the page, and a continuation token if there is one row more than fits on it."""
        rows_on_page = rows[: self.size]
        document = {name: [show(row) for row in rows_on_page]}
        return document | (
            {"continuationToken": _format_token(position(rows_on_page[-1]))} if len(rows) > self.size else {}
        )


def parse_page(options: Mapping[str, str], *position_types: type) -> PageOptions:
    """Return the requested page. `position_types`: the types of a position's parts."""
    limit = options.get("limit", "")
    size = min(int(limit[:9] or MAX_PAGE_SIZE), MAX_PAGE_SIZE) or MAX_PAGE_SIZE
    token = options.get("continuationToken", "")
    return PageOptions(size, _parse_token(token, position_types) if token else ())


def _format_token(position: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(position)).encode()).decode().rstrip("=")


def _parse_token(token: str, position_types: tuple[type, ...]) -> tuple[Any, ...]:
    try:
        position = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, RecursionError):
        position = None
    is_valid = isinstance(position, list) and [type(each) for each in position] == list(position_types)
    if not is_valid or any("\0" in each if isinstance(each, str) else abs(each) >= 2**63 for each in position):
        raise errors.Invalid("Invalid continuationToken. Use a token from an earlier response of this server.")
    return tuple(position)


TIMESTAMP_PATTERN = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def parse_timestamp(text: str, field: str) -> int:
    """Return the time in epoch milliseconds.

    Raises:
        InputValidationError: when the text is no timestamp
        ValueError: never, it is converted.
    """
    found = TIMESTAMP_PATTERN.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        *numbers, fraction, sign, hours, minutes = found.groups()
        year, month, day, hour, minute, second = map(int, numbers)
        # A leap second is the start of the next minute.
        local = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC) + timedelta(seconds=second // 60)
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        time = local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError):
        raise InputValidationError(
            f"Schema Validation Failed!\n  * data.{field}: must be a date-time with a time zone"
        ) from None
    return round(time.timestamp()) * 1000 + int(((fraction or "") + "000")[:3])


def add_one_year(ms: int) -> int:
    """Return the same day of the next calendar year.

    Raises:
        InputValidationError: when that year cannot be represented.
    """
    seconds, milliseconds = divmod(ms, 1000)
    day = datetime.fromtimestamp(seconds, UTC)
    is_leap_day = (day.month, day.day) == (2, 29)
    try:
        later = day.replace(year=day.year + 1, month=3, day=1) if is_leap_day else day.replace(year=day.year + 1)
    except ValueError:
        raise InputValidationError("Schema Validation Failed!\n  * data.deadline: must be earlier") from None
    return round(later.timestamp()) * 1000 + milliseconds


MAX_BYTES = 10 * 1024 * 1024
MAX_DEPTH = 200
ESCAPED_NUL = b"\\u0000"


def read_json(request: HttpRequest, method: str) -> Any:
    """Return the body as a JSON value, or None for a method without a body.

    Raises:
        MalformedPayload: when it is not JSON
        UnsupportedMediaType: when its charset or its encoding is unknown
        InputTooLarge: when it is too long.
    """
    if method not in SCHEMAS:
        return None
    if request.content_type != "application/json":
        raise MalformedPayload("Payload must be JSON with content-type: application/json")
    body = without_mark(to_utf8(read_bytes(request), (request.content_params or {}).get("charset", "utf-8")))
    try:
        value = loads(body)
    except (ValueError, RecursionError) as error:
        _refuse_lone_surrogates(body)
        raise MalformedPayload(f"Failed to parse JSON: {_unreadable_value(body) or str(error)[:200]}") from None
    _refuse_unstorable(value, body)
    return value


def _unreadable_value(body: bytes) -> str:
    """Return what is wrong with a body that is JSON but for values such as NaN, which Python writes."""
    try:
        _, found = find_unreadable(body)
    except ValueError:
        return ""
    return str(found[0]) if found else ""


def read_bytes(request: HttpRequest) -> bytes:
    """Return the bytes of the body, decompressed. A signature covers these bytes.

    Raises:
        MalformedPayload: when the client disconnects
        UnsupportedMediaType: when it is compressed in an unknown way
        InputTooLarge: when it is too long.
    """
    try:
        size = int(request.META.get("CONTENT_LENGTH") or 0)
        if size > MAX_BYTES:
            raise InputTooLarge(f"The body of a request may have at most {MAX_BYTES} bytes.")
        return decompress(request.body, request.META.get("HTTP_CONTENT_ENCODING", ""), MAX_BYTES)
    except errors.PayloadTooLarge as error:
        raise InputTooLarge(error.message) from None
    except (ValueError, UnreadablePostError, RawPostDataException):
        raise MalformedPayload("The body of the request could not be read.") from None


def _refuse_lone_surrogates(body: bytes) -> None:
    """Refuse an escaped lone surrogate, which is valid JSON but no character."""
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise errors.Invalid("The body contains a lone surrogate, which is not allowed.") from None
    except (ValueError, RecursionError):
        return


def _refuse_unstorable(value: JsonValue, body: bytes) -> None:
    if ESCAPED_NUL in body.lower() and "\0" in json.dumps(value, ensure_ascii=False).replace("\\u0000", "\0"):
        raise errors.Invalid("The body contains the character NUL, which is not allowed.")
    if is_too_deep(value, body, MAX_DEPTH):
        raise errors.Invalid(f"The body is nested more than {MAX_DEPTH} levels deep.")


def validate_body(method: str, value: JsonValue) -> Any:
    """Return the value with its defaults."""
    if method not in SCHEMAS:
        return None
    schema = SCHEMAS[method]
    if isinstance(value, dict):
        defaults = {name: each["default"] for name, each in schema["properties"].items() if "default" in each}
        value = {**defaults, **value}
    if found := schema_errors(method, value):
        raise InputValidationError("\n".join(["Schema Validation Failed!", *(f"  * {each}" for each in found)]))
    return value


def parse_success(request: HttpRequest) -> bool:
    """Return the result in an older body of reportCompleted: success unless it states a failure."""
    try:
        return json.loads(read_bytes(request) or b"{}").get("success") is not False
    except (ValueError, RecursionError, AttributeError):
        return True


RANGE_PATTERN = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def parse_range(header: str, size: int) -> range | None:
    """Return the requested bytes, or an empty range if there are no such bytes.

    Returns None for the whole content: without a header, for an invalid one, and for a list of ranges.
    """
    match = RANGE_PATTERN.fullmatch(header.strip())
    if match is None or match[0] == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return range(max(size - int(last), 0), size)
    if last and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1, size) if last else size)


CHUNK_BYTES = 256 * 1024
UPLOAD_INTERRUPTED = "The upload broke off before its end."


class RequestBodyStream(io.RawIOBase):
    """Stream of a request body. It can be read once, from start to end."""

    def __init__(self, source: Callable[[int], bytes], size: int | None, max_bytes: int) -> None:
        super().__init__()
        self._source, self._declared_size, self._max_bytes = source, size, max_bytes
        self.bytes_read = 0
        self.read_error: errors.RequestRefused | None = None
        """Why it cannot be read: storages put words of their own in its place."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return the next `size` bytes, fewer only at the end: storages make parts of them that must not be small."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        chunks, remaining = [], size
        while remaining and (chunk := self._read_chunk(remaining)):
            chunks.append(chunk)
            remaining -= len(chunk)
        return b"".join(chunks)

    def _read_chunk(self, size: int) -> bytes:
        remaining = size if self._declared_size is None else min(size, self._declared_size - self.bytes_read)
        chunk = self._read_source(remaining) if remaining else b""
        self.bytes_read += len(chunk)
        if self.bytes_read > self._max_bytes:
            self._fail_with(f"An artifact may have at most {self._max_bytes} bytes.", InputTooLarge)
        return chunk

    def _read_source(self, size: int) -> bytes:
        try:
            chunk = self._source(size)
        except Exception:
            return self._fail_with(UPLOAD_INTERRUPTED)
        return chunk if chunk or self._declared_size is None else self._fail_with(UPLOAD_INTERRUPTED)

    def _fail_with(self, message: str, kind: type[errors.RequestRefused] = errors.Invalid) -> NoReturn:
        self.read_error = kind(message)
        raise self.read_error


class RequestUpload(File):
    """A request body as an uploaded file."""

    def __init__(self, body: RequestBodyStream) -> None:
        super().__init__(cast(IO[bytes], body), name="upload")
        self.body = body

    @property
    def size(self) -> int:
        """Return the number of bytes read so far, which is all of them once the content is stored."""
        return self.body.bytes_read


def receive_upload(request: HttpRequest, max_bytes: int) -> RequestUpload:
    """Return the upload of a request.

    Raises:
        Invalid: when the length is invalid
        InputTooLarge: when it exceeds `max_bytes`.
    """
    if request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        # Django does not read a body without a Content-Length.
        return RequestUpload(RequestBodyStream(request.META["wsgi.input"].read, None, max_bytes))
    size = request.META.get("CONTENT_LENGTH") or "0"
    if not (size.isascii() and size.isdigit()):
        raise errors.Invalid("Invalid Content-Length: it must be a number.")
    if int(size) > max_bytes:
        raise InputTooLarge(f"An artifact may have at most {max_bytes} bytes.")
    return RequestUpload(RequestBodyStream(request.read, int(size), max_bytes))
