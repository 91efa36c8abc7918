"""The request body as JSON of any content type, refused if a database or a client could not store it."""

from typing import Any

from django.http import HttpRequest, RawPostDataException
from django.http.request import UnreadablePostError

from ... import conf
from ...core.errors import Invalid, PayloadTooLarge
from ...json_values import MAX_DEPTH, find_unreadable, is_too_deep, loads_repaired
from ..body_encoding import decompress, to_utf8, without_mark

TOO_DEEP = f"The request body is nested more than {MAX_DEPTH} levels deep."


class UnreadableBody(Invalid):
    """The body has values that JSON or this server does not have, such as NaN, or is nested too deeply.

    `document` is the body without them.
    """

    def __init__(self, message: str, document: Any) -> None:
        super().__init__(message)
        self.document = document


def read_bytes(request: HttpRequest) -> bytes:
    """Return the bytes of the body, decompressed.

    Raises:
        Invalid: when the client sent less than it announced
        UnsupportedMediaType: when it is compressed in an unknown way
        PayloadTooLarge: when it is too large.
    """
    content_length(request, conf.max_request_bytes)
    try:
        body = request.body
    except (UnreadablePostError, RawPostDataException):
        raise Invalid("The body of the request could not be read.") from None
    encoding = request.META.get("HTTP_CONTENT_ENCODING")
    return decompress(body, encoding, conf.max_request_bytes) if encoding and body else body


def read_text(request: HttpRequest) -> bytes:
    """Return the body as text in UTF-8, whatever charset the client declares.

    Raises:
        Invalid: as `read_bytes`, or when it is no text in its charset
        UnsupportedMediaType: when the charset is unknown.
    """
    body = read_bytes(request)
    charset = (request.content_params or {}).get("charset")
    return to_utf8(body, charset) if charset else body


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
    return parse_json(read_text(request))


def parse_json(body: bytes) -> Any:
    """Return a JSON value.

    Raises:
        Invalid: when the body is missing or invalid
        UnreadableBody: when it is valid but for single values, or its depth.
    """
    if not body:
        raise Invalid("Required request body is missing.")
    try:
        # A worker whose text was cut within a character has done its work all the same.
        value = loads_repaired(body)
    except (ValueError, RecursionError) as error:
        if (text := without_mark(body)) != body:
            return parse_json(text)
        _refuse_unreadable(body)
        raise Invalid(f"The request body is not valid JSON: {str(error)[:200]}") from None
    if is_too_deep(value, body, MAX_DEPTH):
        raise UnreadableBody(TOO_DEEP, value)
    return value


def _refuse_unreadable(body: bytes) -> None:
    """Refuse values that cannot be read, by name.

    Raises:
        UnreadableBody: when they, or the depth, are all that is wrong.
    """
    try:
        document, found = find_unreadable(body)
    except ValueError:
        return
    if is_too_deep(document, body, MAX_DEPTH):
        raise UnreadableBody(TOO_DEEP, document)
    if found:
        others = f" Other values that cannot be read: {len(found) - 1}." if len(found) > 1 else ""
        raise UnreadableBody(f"The request body cannot be read: {found[0]}{others}", document)


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
