"""Check replies against the OpenAPI document, with strict types: a Boolean is no integer, and null only where declared.

`install` makes Django's test client check every reply of Conductor's API, in all tests.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client

from conductor_app.site.openapi.pages import build_document
from conductor_app.web.api.view import ConductorView
from conductor_app.web.client_views import WaitingReply

URLS = "conductor_app.urls"
BITS = {"int32": 32, "int64": 64}
ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
KEPT_FIELDS = ("colour", "orgId", "recieverWorkflow")
"""Unknown fields that tests add to definitions. The server keeps and returns the unknown fields of a definition."""
UNDESCRIBED = ("/api/openapi.json", "/api-docs")
"""Addresses that the document leaves out: its own."""
MAX_DIFFERENCES = 10


class UndocumentedReply(AssertionError):
    """The reply differs from the OpenAPI document."""


def install(patch: pytest.MonkeyPatch) -> None:
    """Make Django's test client check the replies of Conductor's API."""
    send = Client.request

    def send_and_check(client: Client, **request: Any) -> HttpResponse:
        reply = send(client, **request)
        match = getattr(reply, "resolver_match", None)
        # A reply that waits has no content yet. The addresses of a test are not in the document.
        is_final = match is not None and not isinstance(reply, WaitingReply) and settings.ROOT_URLCONF == URLS
        # A browser that is signed in gets a page where the request is refused before the view.
        is_page = bool(client.cookies) and reply.headers.get("Content-Type", "").startswith("text/html")
        if is_final and not is_page and issubclass(getattr(match.func, "cls", object), ConductorView):
            path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", match.route)
            body = None if reply.streaming else reply.content
            check_reply(request["REQUEST_METHOD"], path, reply.status_code, reply.headers.get("Content-Type", ""), body)
        return reply

    patch.setattr(Client, "request", send_and_check)


def check_reply(
    method: str, path: str, status: int, content_type: str, body: bytes | None, *, has_unknown_fields: bool = False
) -> None:
    """Compare a reply with its operation in the document.

    `path`: with names for its variable parts. `body`: None if it is streamed. `has_unknown_fields`: requests contained
    any unknown fields, which the server keeps in definitions.

    Raises:
        UndocumentedReply: when they differ.
    """
    kind = content_type.partition(";")[0]
    if problems := list(_differences(method, path, str(status), kind, body, has_unknown_fields)):
        text = "\n  ".join(problems[:MAX_DIFFERENCES])
        raise UndocumentedReply(f"{method} {path} answers {status}, unlike the OpenAPI document:\n  {text}")


def _differences(
    method: str, path: str, status: str, kind: str, body: bytes | None, has_unknown_fields: bool
) -> Iterator[str]:
    paths = build_document()["paths"]
    # Some addresses have a second form with a slash at the end, which the document leaves out.
    operations = paths.get(path) or paths.get(path.removesuffix("/"), {})
    operation = operations.get("get" if method == "HEAD" else method.lower())
    if operation is None:
        if status >= "400":
            yield from _differences_of_content(ERROR, kind, body, has_unknown_fields)
        elif path not in UNDESCRIBED:
            yield "The document does not describe the operation."
        return
    if status not in operation["responses"]:
        yield f"The declared statuses are {', '.join(operation['responses'])}. The reply is {(body or b'')[:300]!r}."
        return
    is_empty = not kind and not body
    if method != "HEAD" and not (is_empty and status == "200" and "x-empty-when" in operation):
        contents = operation["responses"][status].get("content", {})
        yield from _differences_of_content(contents, kind, body, has_unknown_fields)


def _differences_of_content(
    contents: dict[str, Any], kind: str, body: bytes | None, has_unknown_fields: bool
) -> Iterator[str]:
    """Compare type and body with the declared contents by type. None are declared for an empty reply."""
    if not contents:
        if kind or body:
            yield f"The reply should be empty, and is {kind} {(body or b'')[:300]!r}."
    elif kind not in contents and "*/*" not in contents:
        yield f"The declared types are {', '.join(contents)}, and the type is {kind or 'missing'}."
    elif kind == "application/json" and kind in contents and body is not None:
        validator = _validator(json.dumps(contents[kind]["schema"]), has_unknown_fields)
        for error in validator.iter_errors(json.loads(body)):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
            yield f"${place}: {error.message[:300]}"


@cache
def _validator(schema: str, has_unknown_fields: bool) -> Any:
    """Return the validator of a schema. Draft 4 is that of OpenAPI 3.0, and takes 1.0 for no integer."""
    schemas = _strict_components(has_unknown_fields)
    return jsonschema_rs.Draft4Validator(
        {**_make_strict(json.loads(schema), has_unknown_fields), "components": {"schemas": schemas}}
    )


@cache
def _strict_components(has_unknown_fields: bool) -> dict[str, Any]:
    return _make_strict(build_document()["components"]["schemas"], has_unknown_fields)


def _make_strict(schema: Any, has_unknown_fields: bool) -> Any:
    """Return a schema of OpenAPI in JSON Schema, with the range of integers, and without undeclared fields."""
    if isinstance(schema, list):
        return [_make_strict(each, has_unknown_fields) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _make_strict(value, has_unknown_fields) for name, value in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and not has_unknown_fields:
        strict.setdefault("additionalProperties", False)
        strict["properties"] |= {name: {} for name in KEPT_FIELDS}
    if (bits := BITS.get(schema.get("format"))) and schema.get("type") == "integer":
        strict |= {"minimum": -(2 ** (bits - 1)), "maximum": 2 ** (bits - 1) - 1}
    if strict.pop("nullable", False) is True:
        return {"anyOf": [strict, {"type": "null"}]}
    return strict
