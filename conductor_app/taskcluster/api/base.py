"""The body of a request: JSON, validated by the schema of its method, with defaults for absent members."""

import json
from typing import Any

from django.http import HttpRequest, RawPostDataException
from django.http.request import UnreadablePostError

from ...core.errors import Invalid, PayloadTooLarge
from ...json_values import find_unreadable, is_too_deep, loads
from ..body_encoding import decompress, to_utf8, without_mark
from .errors import InputTooLarge, InputValidationError, MalformedPayload
from .schemas import SCHEMAS, schema_errors

MAX_BYTES = 10 * 1024 * 1024
MAX_DEPTH = 200
ESCAPED_NUL = b"\\u0000"


def read_json(request: HttpRequest, method: str) -> Any:
    """Return the body as a JSON value, or None for a method without a body.

    Raises:
        MalformedPayload: when it is not JSON
        Invalid: when it is no text in its charset
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
    except PayloadTooLarge as error:
        raise InputTooLarge(error.message) from None
    except (ValueError, UnreadablePostError, RawPostDataException):
        raise MalformedPayload("The body of the request could not be read.") from None


def _refuse_lone_surrogates(body: bytes) -> None:
    """Refuse an escaped lone surrogate, which is valid JSON but no character.

    Raises:
        Invalid: when the body has one.
    """
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Invalid("The body contains a lone surrogate, which is not allowed.") from None
    except (ValueError, RecursionError):
        return


def _refuse_unstorable(value: Any, body: bytes) -> None:
    if ESCAPED_NUL in body.lower() and "\0" in json.dumps(value, ensure_ascii=False).replace("\\u0000", "\0"):
        raise Invalid("The body contains the character NUL, which is not allowed.")
    if is_too_deep(value, body, MAX_DEPTH):
        raise Invalid(f"The body is nested more than {MAX_DEPTH} levels deep.")


def validate_body(method: str, value: Any) -> Any:
    """Return the value with its defaults.

    Raises:
        InputValidationError: with all schema errors.
    """
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
