"""What goes back to a client: JSON, bare text, or nothing. The type is fixed by the endpoint, never asked for."""

from typing import Any

import orjson
from django.http import HttpResponse

from ...models.fields import dumps


def Json(document: Any, status: int = 200) -> HttpResponse:
    """A JSON document."""
    try:
        body = orjson.dumps(document)
    except TypeError:
        # Integers beyond 64 bits, or nested deeper than orjson goes.
        body = (dumps(document) or "null").encode()
    return _build_response(body, "application/json", status)


def PlainText(text: str, status: int = 200) -> HttpResponse:
    """Bare text without quotes, as clients want their ids."""
    return _build_response(text.encode(), "text/plain;charset=UTF-8", status)


def EmptyOk() -> HttpResponse:
    """200 with nothing in it: a JSON type here makes a client fail (api §8.1)."""
    response = _build_response(b"", "", 200)
    del response.headers["Content-Type"]
    return response


def NoContent() -> HttpResponse:
    """204: there is nothing to give, and so no type either."""
    response = HttpResponse(status=204)
    del response.headers["Content-Type"]
    return response


def _build_response(body: bytes, content_type: str, status: int) -> HttpResponse:
    response = HttpResponse(body, content_type=content_type or None, status=status)
    response.headers["Content-Length"] = str(len(body))
    return response
