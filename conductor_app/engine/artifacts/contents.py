"""The content of artifacts: it comes and goes piece by piece, and is kept where large payloads are."""

from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

from django.core.files.base import File
from django.db import transaction

from ... import clock, warehouse
from ...core.errors import NotFound
from ...models import Artifact, StoredPayload
from ..payloads import reached
from .entries import find, forgotten_at


def fill(task_id: str, number: int, name: str, content: File, encoding: str = "") -> Artifact:
    """Keep what has come as the content of an artifact; what came before is let go of. Raises NotFound and Busy."""
    row, now = find(task_id, number, name), clock.now()
    path = f"artifacts/{uuid4()}"
    # The row is first: nothing is ever kept that nobody knows of.
    StoredPayload.objects.create(path=path, created_at=now, expires_at=forgotten_at(row))
    try:
        with reached(path):
            warehouse.put(path, content)
    except BaseException:
        # Half of a large file is a large file: it does not wait for the next pass.
        with suppress(warehouse.OutOfReach):
            warehouse.drop(path)
        _let_go(path)
        raise
    with transaction.atomic():
        StoredPayload.objects.filter(pk=path).update(size=content.size)
        row = Artifact.objects.select_for_update().filter(pk=row.pk).first()
        if row is None:
            raise NotFound(f"Artifact {name} of task {task_id} has been deleted meanwhile.")
        _let_go(row.path)
        row.path, row.size, row.content_encoding = path, content.size, encoding
        row.save(update_fields=["path", "size", "content_encoding"])
    return row


def _let_go(path: str) -> None:
    """It is nobody's: the next pass deletes it, when whoever still reads it has long ended."""
    StoredPayload.objects.filter(pk=path).update(expires_at=clock.now())


def stream(task_id: str, number: int, name: str) -> tuple[Artifact, Iterator[bytes]]:
    """An artifact and its content, piece by piece; raises NotFound and Busy."""
    row = find(task_id, number, name)
    if not row.path:
        raise NotFound(f"The content of artifact {name} has not come.")
    with reached(row.path):
        return row, warehouse.chunks(row.path)
