"""The content of artifacts: it comes and goes piece by piece, and is kept where large payloads are."""

from collections.abc import Iterator

from django.core.files.base import File
from django.db import transaction

from ... import blob_storage
from ...core.errors import NotFound
from ...models import Artifact
from ..content_files import keep_content, release_content
from ..payloads import storage_errors
from .entries import content_deleted_at, find


def store_content(task_id: str, number: int, name: str, content: "File[bytes]", encoding: str = "") -> Artifact:
    """Keep what has come as the content of an artifact; what came before is let go of. Raises NotFound and Busy."""
    row = find(task_id, number, name)
    path = keep_content("artifacts", content, content_deleted_at(row))
    with transaction.atomic():
        row = Artifact.objects.select_for_update().filter(pk=row.pk).first()
        if row is None:
            raise NotFound(f"Artifact {name} of task {task_id} has been deleted meanwhile.")
        release_content(row.path)
        row.path, row.size, row.content_encoding = path, content.size, encoding
        row.save(update_fields=["path", "size", "content_encoding"])
    return row


def find_present(task_id: str, number: int, name: str) -> Artifact:
    """An artifact whose content is here; raises NotFound."""
    row = find(task_id, number, name)
    if not row.path:
        raise NotFound(f"The content of artifact {name} has not come.")
    return row


def stream_content(row: Artifact, part: range | None = None) -> Iterator[bytes]:
    """Its content, or a part of that, piece by piece; raises NotFound and Busy."""
    with storage_errors(row.path):
        return blob_storage.stream_payload(row.path, part)
