"""Artifacts ⇄ Taskcluster's documents, and the addresses at which their content comes and goes."""

from typing import Any
from urllib.parse import quote, urlencode

from django.http import HttpRequest

from .... import clock
from ....access.links import link
from ....core.solo.artifacts import ERROR, REFERENCE, Artifact
from ....insight.solo import moment
from ....models import Artifact as Row
from ..moments import milliseconds

MINUTE_MS = 60_000
PUT_MS, GET_MS = 45 * MINUTE_MS, 30 * MINUTE_MS
"""How long the address of an artifact's content is good for sending it, and for fetching it."""
SEND, FETCH = "send artifact", "fetch artifact"
UNKNOWN_TYPE = "application/binary"
DETAILS = {REFERENCE: ("url",), "link": ("artifact",), ERROR: ("reason", "message")}


def new_artifact(document: dict[str, Any]) -> Artifact:
    """What a document asks for."""
    kind = document["storageType"]
    return Artifact(
        kind,
        document.get("contentType", UNKNOWN_TYPE),
        milliseconds(document["expires"], "expires"),
        {name: document[name] for name in DETAILS.get(kind, ())},
        document.get("contentLength"),
    )


def upload_reply(request: HttpRequest, row: Row) -> dict[str, Any]:
    """The reply to a worker that is going to send the content."""
    return {
        "storageType": row.kind,
        "putUrl": content_address(request, row, SEND, PUT_MS),
        "expires": moment(clock.now() + PUT_MS),
        "contentType": row.content_type,
    }


def content_address(request: HttpRequest, row: Row, purpose: str, valid_ms: int) -> str:
    """An address of this server that is good for one purpose, and a while."""
    permission = link(signed_path(row.task_id, row.number, row.name), purpose, valid_ms)
    path = f"/api/artifacts/v1/{row.task_id}/{row.number}/{quote(row.name)}"
    return request.build_absolute_uri(f"{path}?{urlencode(permission)}")


def signed_path(task_id: str, number: int, name: str) -> str:
    """What the permission in such an address is for."""
    return f"{task_id}/{number}/{name}"


def download_url(request: HttpRequest, row: Row) -> str:
    """Where the content is: here, or where a reference leads."""
    return row.details["url"] if row.kind == REFERENCE else content_address(request, row, FETCH, GET_MS)
