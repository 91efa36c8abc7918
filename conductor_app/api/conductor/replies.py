"""Responses: JSON, plain text, or no body. Each endpoint has a fixed content type; there is no negotiation."""

from typing import Any

import orjson
from django.http import HttpResponse

from ...models.fields import dumps


def Json(document: Any, status: int = 200) -> HttpResponse:
    """Return a response with a JSON document."""
    try:
        body = orjson.dumps(document)
    except TypeError:
        # Integers beyond 64 bits, or nested deeper than orjson goes.
        body = (dumps(document) or "null").encode()
    return _build_response(body, "application/json", status)


def PlainText(text: str, status: int = 200) -> HttpResponse:
    """Return a response with plain text without quotes, as clients expect ids."""
    return _build_response(text.encode(), "text/plain;charset=UTF-8", status)


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
