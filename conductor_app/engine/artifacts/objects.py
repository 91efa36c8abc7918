"""Artifacts of the type object: their content comes by the Object service, which knows their hashes."""

import base64
from collections.abc import Mapping
from uuid import uuid4

from django.db import transaction

from ...core.errors import Conflict, Invalid, NotFound
from ...core.standalone.artifacts import OBJECT
from ...models import Artifact

Hashes = Mapping[str, str]
Key = tuple[str, int, str]
"""Task, number of the attempt, name."""


def new_upload(project_id: str) -> dict[str, str]:
    """What an artifact says of the upload that is to come."""
    upload_id = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
    return {"uploadId": upload_id, "projectId": project_id}


def find_object(key: Key) -> Artifact:
    """The artifact, if it is an object; raises NotFound."""
    task_id, number, name = key
    row = Artifact.objects.of(task_id, number).filter(name=name, kind=OBJECT).first()
    if row is None:
        raise NotFound("There is no such object.")
    return row


def begin_upload(key: Key, upload_id: str, project_id: str, hashes: Hashes) -> Artifact:
    """The content is about to come. Raises NotFound, and Conflict where another upload has the object."""
    with transaction.atomic():
        row = _lock_object(key, upload_id, project_id)
        if row.details.get("isFinished"):
            raise Conflict("The upload of this object is finished.")
        _record_hashes(row, hashes)
    return row


def finish_upload(key: Key, upload_id: str, project_id: str, hashes: Hashes) -> None:
    """All of the content has come; said again, nothing happens. Raises NotFound, Invalid and Conflict."""
    with transaction.atomic():
        row = _lock_object(key, upload_id, project_id)
        if row.details.get("isFinished"):
            if not hashes.items() <= row.details["hashes"].items():
                raise Conflict("The upload of this object is finished, with other hashes.")
            return
        if not row.path:
            raise Invalid("The content of this object has not come.")
        _record_hashes(row, hashes, isFinished=True)


def _lock_object(key: Key, upload_id: str, project_id: str) -> Artifact:
    row = Artifact.objects.select_for_update().filter(pk=find_object(key).pk).get()
    if (row.details["uploadId"], row.details["projectId"]) != (upload_id, project_id):
        raise Conflict("Another upload has this object.")
    return row


def _record_hashes(row: Artifact, hashes: Hashes, **facts: bool) -> None:
    known = row.details.get("hashes", {})
    if any(known.get(name, value) != value for name, value in hashes.items()):
        raise Conflict("The hashes are not those that were said before.")
    row.details = {**row.details, "hashes": {**known, **hashes}, **facts}
    row.save(update_fields=["details"])
