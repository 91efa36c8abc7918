"""Parsing and documents of artifacts, with the addresses of their content."""

from typing import Any

from django.http import HttpRequest

from .... import clock
from ....access.signed_links import DOWNLOAD, UPLOAD, UPLOAD_VALID_MS, artifact_address
from ....core.standalone.artifacts import ERROR, REFERENCE, ArtifactValue
from ....insight.standalone.task_status import format_timestamp
from ....models import Artifact as Row
from ..timestamps import parse_timestamp

UNKNOWN_TYPE = "application/binary"
DETAIL_FIELDS = {REFERENCE: ("url",), "link": ("artifact",), ERROR: ("reason", "message")}


def parse_artifact(document: dict[str, Any]) -> ArtifactValue:
    """Return the artifact that a document describes."""
    kind = document["storageType"]
    return ArtifactValue(
        kind,
        document.get("contentType", UNKNOWN_TYPE),
        parse_timestamp(document["expires"], "expires"),
        {name: document[name] for name in DETAIL_FIELDS.get(kind, ())},
        document.get("contentLength"),
    )


def upload_reply(request: HttpRequest, row: Row) -> dict[str, Any]:
    """Return the response to a worker that uploads the content next."""
    return {
        "storageType": row.kind,
        "putUrl": content_address(request, row, UPLOAD),
        "expires": format_timestamp(clock.now() + UPLOAD_VALID_MS),
        "contentType": row.content_type,
    }


def content_address(request: HttpRequest, row: Row, purpose: str) -> str:
    """Return an address of this server that allows one purpose for a limited time."""
    return request.build_absolute_uri(artifact_address(row.task_id, row.number, row.name, purpose))


def download_url(request: HttpRequest, row: Row) -> str:
    """Return the address of the content: on this server, or the target of a reference."""
    return row.details["url"] if row.kind == REFERENCE else content_address(request, row, DOWNLOAD)
