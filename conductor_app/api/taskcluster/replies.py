"""Responses: JSON or no body, with the headers of all responses."""

from typing import Any

import orjson
from django.http import HttpResponse

from ...models.fields import dumps

NO_CACHE = "no-store no-cache must-revalidate"


def Json(document: Any, status: int = 200) -> HttpResponse:
    """Return a JSON document that must not be cached."""
    try:
        body = orjson.dumps(document)
    except TypeError:
        # Integers beyond 64 bits, or nested deeper than orjson goes.
        body = (dumps(document) or "null").encode()
    reply = HttpResponse(body, content_type="application/json", status=status)
    reply.headers["Content-Length"] = str(len(body))
    reply.headers["Cache-Control"] = NO_CACHE
    return reply


def NoContent() -> HttpResponse:
    """Return an empty response."""
    return HttpResponse(status=204, headers={"Cache-Control": NO_CACHE})
