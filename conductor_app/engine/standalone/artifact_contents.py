"""Content of artifacts: uploaded and downloaded in chunks, and stored in blob storage."""

from collections.abc import Iterator

from django.core.files.base import File
from django.db import transaction

from ... import blob_storage
from ...core.errors import NotFound
from ...models import Artifact
from ..payloads.content_files import release_content, save_content
from ..payloads.payload_storage import storage_errors
from .artifacts import content_deleted_at, find


def store_content(task_id: str, number: int, name: str, content: "File[bytes]", encoding: str = "") -> Artifact:
    """Store the content of an artifact. It replaces earlier content.

    Raises:
        NotFound: when there is no such artifact.
        Busy: when the storage cannot be reached.
    """
    row = find(task_id, number, name)
    path = save_content("artifacts", content, content_deleted_at(row))
    with transaction.atomic():
        locked = Artifact.objects.select_for_update().filter(pk=row.pk).first()
        if locked is None:
            raise NotFound(f"Artifact {name} of task {task_id} was deleted during the upload.")
        release_content(row.path)
        row.path, row.size, row.content_encoding = path, content.size, encoding
        row.save(update_fields=["path", "size", "content_encoding"])
    return row


def find_present(task_id: str, number: int, name: str) -> Artifact:
    """Return an artifact whose content is stored on this server.

    Raises:
        NotFound: when there is no such artifact, or it has no content.
    """
    row = find(task_id, number, name)
    if not row.path:
        raise NotFound(f"Artifact {name} has no content yet.")
    return row


def stream_content(row: Artifact, part: range | None = None) -> Iterator[bytes]:
    """Return the content of an artifact, or a range of it, in chunks.

    Raises:
        PayloadMissing: when the file is missing in the storage.
        Busy: when the storage cannot be reached.
    """
    with storage_errors(row.path):
        return blob_storage.stream_payload(row.path, part)
