"""The request body as JSON of any content type, refused if a database or a client could not store it."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, RawPostDataException
from django.http.request import UnreadablePostError

from ... import conf
from ...core.errors import Invalid, PayloadTooLarge
from ...json_values import MAX_DEPTH, find_non_finite, is_too_deep, loads_repaired
from ..body_encoding import decompress, to_utf8, without_mark


class NonFiniteNumber(Invalid):
    """The body has a number that JSON does not have: NaN or Infinity, as Python writes them.

    `document` is the body with None in the place of each of them.
    """

    def __init__(self, document: Any, found: Sequence[tuple[str, str]]) -> None:
        path, word = found[0]
        others = f", as are {len(found) - 1} more values" if len(found) > 1 else ""
        super().__init__(
            f"The request body is not valid JSON: {path[:200] or 'it'} is {word}{others}. JSON has no such number. "
            "Send null or a text instead."
        )
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
        Invalid: when the body is missing, invalid or nested too deeply
        NonFiniteNumber: when it is valid but for NaN or Infinity.
    """
    if not body:
        raise Invalid("Required request body is missing.")
    try:
        # A worker whose text was cut within a character has done its work all the same.
        value = loads_repaired(body)
    except (ValueError, RecursionError) as error:
        if (text := without_mark(body)) != body:
            return parse_json(text)
        _refuse_non_finite(body)
        raise Invalid(f"The request body is not valid JSON: {str(error)[:200]}") from None
    if is_too_deep(value, body, MAX_DEPTH):
        raise Invalid(f"The request body is nested more than {MAX_DEPTH} levels deep.")
    return value


def _refuse_non_finite(body: bytes) -> None:
    """Refuse NaN and Infinity by name.

    Raises:
        NonFiniteNumber: when they are all that is wrong.
    """
    if b"NaN" not in body and b"Infinity" not in body:
        return
    try:
        document, found = find_non_finite(body)
    except (ValueError, RecursionError):
        return
    if found:
        raise NonFiniteNumber(document, found)


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
