"""Artifacts of the type object, whose content is uploaded through the Object service with its hashes."""

import base64
from collections.abc import Mapping
from uuid import uuid4

from django.db import transaction

from ...core.errors import Conflict, Invalid, NotFound
from ...core.standalone.artifacts import OBJECT
from ...models import Artifact

Hashes = Mapping[str, str]
Key = tuple[str, int, str]
"""Task id, number of the attempt, name."""


def new_upload(project_id: str) -> dict[str, str]:
    """Return the details of a new object artifact for its upload."""
    upload_id = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
    return {"uploadId": upload_id, "projectId": project_id}


def find_object(key: Key) -> Artifact:
    """Return an object artifact.

    Raises:
        NotFound: when there is no such artifact, or it is not an object.
    """
    task_id, number, name = key
    row = Artifact.objects.of(task_id, number).filter(name=name, kind=OBJECT).first()
    if row is None:
        raise NotFound("There is no such object.")
    return row


def begin_upload(key: Key, upload_id: str, project_id: str, hashes: Hashes) -> Artifact:
    """Start the upload of an object.

    Raises:
        NotFound: when there is no such object.
        Conflict: when the upload is finished, or the upload id, project or hashes do not match.
    """
    with transaction.atomic():
        row = _lock_object(key, upload_id, project_id)
        if row.details.get("isFinished"):
            raise Conflict("The upload of this object is already finished.")
        _record_hashes(row, hashes)
    return row


def finish_upload(key: Key, upload_id: str, project_id: str, hashes: Hashes) -> None:
    """Finish the upload of an object. A repeated request changes nothing.

    Raises:
        NotFound: when there is no such object.
        Invalid: when the object has no content.
        Conflict: when the upload id, project or hashes do not match.
    """
    with transaction.atomic():
        row = _lock_object(key, upload_id, project_id)
        if row.details.get("isFinished"):
            if not hashes.items() <= row.details["hashes"].items():
                raise Conflict("The upload of this object is already finished with other hashes.")
            return
        if not row.path:
            raise Invalid("The object has no content. Upload it first.")
        _record_hashes(row, hashes, isFinished=True)


def _lock_object(key: Key, upload_id: str, project_id: str) -> Artifact:
    row = Artifact.objects.select_for_update().filter(pk=find_object(key).pk).get()
    if (row.details["uploadId"], row.details["projectId"]) != (upload_id, project_id):
        raise Conflict("The object belongs to another upload or project.")
    return row


def _record_hashes(row: Artifact, hashes: Hashes, **facts: bool) -> None:
    known = row.details.get("hashes", {})
    if any(known.get(name, value) != value for name, value in hashes.items()):
        raise Conflict("The hashes differ from those given before.")
    row.details = {**row.details, "hashes": {**known, **hashes}, **facts}
    row.save(update_fields=["details"])
