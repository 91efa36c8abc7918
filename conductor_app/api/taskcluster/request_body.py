"""The body of a request: JSON that says so, held against the schema of its method, its defaults filled in."""

import json
from typing import Any

from django.http import HttpRequest, RawPostDataException
from django.http.request import UnreadablePostError

from ...core.errors import Invalid
from ...json_values import is_too_deep, loads
from .errors import InputTooLarge, InputValidationError, MalformedPayload
from .schemas import SCHEMAS, schema_errors

MAX_BYTES = 10 * 1024 * 1024
MAX_DEPTH = 200
ESCAPED_NUL = b"\\u0000"
UTF_8_CHARSETS = ("utf-8", "utf8", "us-ascii")


def read_json(request: HttpRequest, method: str) -> Any:
    """The body as a JSON value; None for a method that takes none. Raises MalformedPayload and InputTooLarge."""
    if method not in SCHEMAS:
        return None
    if request.content_type != "application/json":
        raise MalformedPayload("Payload must be JSON with content-type: application/json")
    if (request.content_params or {}).get("charset", "utf-8").strip('"').lower() not in UTF_8_CHARSETS:
        raise Invalid("JSON is written in UTF-8, and in no other charset.")
    body = read_bytes(request)
    try:
        value = loads(body)
    except (ValueError, RecursionError) as error:
        _refuse_lone_surrogates(body)
        raise MalformedPayload(f"Failed to parse JSON: {str(error)[:200]}") from None
    _refuse_unstorable(value, body)
    return value


def read_bytes(request: HttpRequest) -> bytes:
    """The body as it was sent; raises MalformedPayload and InputTooLarge."""
    try:
        size = int(request.META.get("CONTENT_LENGTH") or 0)
        if size > MAX_BYTES:
            raise InputTooLarge(f"The body of a request may have at most {MAX_BYTES} bytes.")
        return request.body
    except (ValueError, UnreadablePostError, RawPostDataException):
        raise MalformedPayload("The body of the request could not be read.") from None


def _refuse_lone_surrogates(body: bytes) -> None:
    """JSON can spell half of a character, which no text holds: that is another fault than JSON which is none."""
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Invalid("The body holds a lone surrogate, which is no character.") from None
    except (ValueError, RecursionError):
        return


def _refuse_unstorable(value: Any, body: bytes) -> None:
    if ESCAPED_NUL in body.lower() and "\0" in json.dumps(value, ensure_ascii=False).replace("\\u0000", "\0"):
        raise Invalid("The body holds the character NUL, which no text may hold.")
    if is_too_deep(value, body, MAX_DEPTH):
        raise Invalid(f"The body is nested more than {MAX_DEPTH} levels deep.")


def validate_body(method: str, value: Any) -> Any:
    """The value with its defaults; raises InputValidationError with all that is wrong."""
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
    """What an older body of reportCompleted says: it was done, unless it says that it was not."""
    try:
        return json.loads(read_bytes(request) or b"{}").get("success") is not False
    except (ValueError, RecursionError, AttributeError):
        return True
