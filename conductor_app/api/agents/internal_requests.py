"""Requests to the API from inside the process, with the identity of another request."""

import json
from io import BytesIO
from typing import Any, cast
from urllib.parse import unquote_to_bytes

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.urls import resolve

from ..conductor.names_with_slashes import mark_slashes
from .agent_tools import ApiCall

PREFIX = "/api"
COPIED = ("REMOTE_ADDR", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "wsgi.url_scheme")
HEADERS = ("HTTP_X_AUTHORIZATION", "HTTP_HOST", "HTTP_ORIGIN", "HTTP_SEC_FETCH_SITE", "HTTP_X_FORWARDED_PROTO")


def call_api(call: ApiCall, original: HttpRequest) -> HttpResponse:
    """Execute a request of the API as the caller of another request. The view authenticates and authorizes it."""
    path, _, query = call.path.partition("?")
    target = f"{PREFIX}{path}"
    body = b"" if call.body is None else json.dumps(call.body).encode()
    environ: dict[str, Any] = {name: original.META[name] for name in (*COPIED, *HEADERS) if name in original.META}
    environ |= {
        "REQUEST_METHOD": call.method,
        "SCRIPT_NAME": "",
        # WSGI passes paths unquoted, as Latin-1.
        "PATH_INFO": mark_slashes(target) or unquote_to_bytes(target).decode("latin-1"),
        "QUERY_STRING": query,
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
    }
    request = WSGIRequest(environ)
    match = resolve(request.path_info)
    request.resolver_match = match
    return cast(HttpResponse, match.func(request, *match.args, **match.kwargs))
