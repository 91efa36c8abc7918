"""The request body as JSON of any content type, refused if a database or a client could not store it."""

from typing import Any

from django.http import HttpRequest, RawPostDataException
from django.http.request import UnreadablePostError

from ... import conf
from ...core.errors import Invalid, PayloadTooLarge
from ...json_values import MAX_DEPTH, is_too_deep, loads_repaired


def read_bytes(request: HttpRequest) -> bytes:
    """Return the bytes of the body.

    Raises:
        Invalid: when the client sent less than it announced.
    """
    content_length(request, conf.max_request_bytes)
    try:
        return request.body
    except (UnreadablePostError, RawPostDataException):
        raise Invalid("The body of the request could not be read.") from None


def content_length(request: HttpRequest, max_bytes: int) -> int:
    """Return the length of the body in bytes.

    Raises:
        PayloadTooLarge: when it exceeds `max_bytes`
        Invalid: when the header is no number.
    """
    try:
        size = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        raise Invalid("Invalid Content-Length: it must be a number.") from None
    if size > max_bytes:
        raise PayloadTooLarge(f"The body of a request may have at most {max_bytes} bytes.")
    return size


def read_json(request: HttpRequest) -> Any:
    """Return the body as a JSON value.

    Raises:
        Invalid: when it is missing or invalid.
    """
    return parse_json(read_bytes(request))


def parse_json(body: bytes) -> Any:
    """Return a JSON value.

    Raises:
        Invalid: when the body is missing, invalid or nested too deeply.
    """
    if not body:
        raise Invalid("Required request body is missing.")
    try:
        # A worker whose text was cut within a character has done its work all the same.
        value = loads_repaired(body)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"The request body is not valid JSON: {str(error)[:200]}") from None
    if is_too_deep(value, body, MAX_DEPTH):
        raise Invalid(f"The request body is nested more than {MAX_DEPTH} levels deep.")
    return value


def read_object(request: HttpRequest) -> dict[str, Any]:
    """Return the body as a JSON object.

    Raises:
        Invalid: when it is none.
    """
    value = read_json(request)
    if not isinstance(value, dict):
        raise Invalid("The request body must be a JSON object.")
    return value


def read_objects(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the body as a list of JSON objects.

    Raises:
        Invalid: when it is none.
    """
    value = read_json(request)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Invalid("The request body must be a list of JSON objects.")
    return value


def read_texts(request: HttpRequest) -> list[str]:
    """Return the body as a list of texts.

    Raises:
        Invalid: when it is none.
    """
    value = read_json(request)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Invalid("The request body must be a list of texts.")
    return value
