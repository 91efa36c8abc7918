"""Documents of artifacts in the format of the Object service."""

import re
from typing import Any

from django.http import HttpRequest

from .... import clock
from ....access.signed_links import DOWNLOAD, DOWNLOAD_VALID_MS, UPLOAD, UPLOAD_VALID_MS
from ....core.errors import NotFound
from ....insight.standalone.task_status import format_timestamp, worker_facts
from ....models import Artifact, Attempt
from ..method_scopes import task_credentials
from .artifact_serializers import content_address

HOUR_MS = 3_600_000
OBJECT_NAME_PATTERN = re.compile(r"t/([A-Za-z0-9_-]{22})/([0-9]{1,9})/(.{1,1024})")


def object_name(row: Artifact) -> str:
    """Return the name of an artifact in the Object service."""
    return f"t/{row.task_id}/{row.number}/{row.name}"


def parse_object_name(name: str) -> tuple[str, int, str]:
    """Return the artifact of a name in the Object service.

    Raises:
        NotFound: when the name has another format.
    """
    found = OBJECT_NAME_PATTERN.fullmatch(name)
    if found is None:
        raise NotFound("There is no such object. Objects are artifacts, named t/<taskId>/<runId>/<name>.")
    return found[1], int(found[2]), found[3]


def creation_reply(row: Artifact) -> dict[str, Any]:
    """Return the response to a worker that uploads the content through the Object service next."""
    worker = worker_facts(Attempt.objects.values_list("worker", flat=True).get(task_id=row.task_id, number=row.number))
    client_id = f"artifact-upload/{row.task_id}/{row.number}/on/{worker['workerGroup']}/{worker['workerId']}"
    project_id, name = row.details["projectId"], object_name(row)
    until = min(clock.now() + 24 * HOUR_MS, row.expires_at)
    return {
        "storageType": row.kind,
        "name": name,
        "projectId": project_id,
        "uploadId": row.details["uploadId"],
        "expires": format_timestamp(row.expires_at),
        "credentials": task_credentials(client_id, [f"object:upload:{project_id}:{name}"], until),
    }


def download_reply(row: Artifact) -> dict[str, Any]:
    """Return how the content can be downloaded through the Object service."""
    name = object_name(row)
    client_id = f"artifact-download/{row.task_id}/{row.number}"
    granted_scopes = [f"object:download:{name}"]
    return {
        "storageType": row.kind,
        "name": name,
        "credentials": task_credentials(client_id, granted_scopes, clock.now() + HOUR_MS),
    }


def upload_method(request: HttpRequest, row: Artifact, proposed: dict[str, Any]) -> dict[str, Any]:
    """Return the address for the upload, or an empty document if the client proposes no method."""
    if "putUrl" not in proposed:
        return {}
    headers = {"Content-Type": row.content_type, "Content-Length": str(proposed["putUrl"]["contentLength"])}
    url, expires = content_address(request, row, UPLOAD), format_timestamp(clock.now() + UPLOAD_VALID_MS)
    return {"putUrl": {"url": url, "expires": expires, "headers": headers}}


def download_method(request: HttpRequest, row: Artifact, accepted: dict[str, Any]) -> dict[str, Any] | None:
    """Return a download method that the client accepts, or None."""
    url = content_address(request, row, DOWNLOAD)
    if accepted.get("getUrl"):
        hashes = row.details.get("hashes", {})
        return {
            "method": "getUrl",
            "url": url,
            "expires": format_timestamp(clock.now() + DOWNLOAD_VALID_MS),
            "hashes": hashes,
        }
    return {"method": "simple", "url": url} if accepted.get("simple") else None
