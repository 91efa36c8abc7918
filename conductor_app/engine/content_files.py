"""Contents that come as files: kept piece by piece, and let go of when nobody needs them any more."""

from contextlib import suppress
from uuid import uuid4

from django.core.files.base import File

from .. import blob_storage, clock
from ..models import StoredPayload
from .payloads import storage_errors


def keep_content(kind: str, content: "File[bytes]", expires_at: int) -> str:
    """Keep a file; its path. It is nobody's, and so goes at that moment, until somebody says that it is his."""
    path = f"{kind}/{uuid4()}"
    # The row is first: nothing is ever kept that nobody knows of.
    StoredPayload.objects.create(path=path, created_at=clock.now(), expires_at=expires_at)
    try:
        with storage_errors(path):
            blob_storage.put_payload(path, content)
    except BaseException:
        # Half of a large file is a large file: it does not wait for the next pass.
        with suppress(blob_storage.StorageUnavailable):
            blob_storage.delete_payload(path)
        release_content(path)
        raise
    StoredPayload.objects.filter(pk=path).update(size=content.size)
    return path


def release_content(*paths: str) -> None:
    """They are nobody's: the next pass deletes them, when whoever still reads them has long ended."""
    StoredPayload.objects.filter(pk__in=paths).update(expires_at=clock.now())
