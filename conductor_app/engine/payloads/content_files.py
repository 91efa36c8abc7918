"""Storage of uploaded files: stored in chunks, and deleted by a sweep when no row refers to them any more."""

from contextlib import suppress
from uuid import uuid4

from django.core.files.base import File

from ... import blob_storage, clock
from ...store import stored_payloads
from ..access import quota_checks
from .payload_storage import storage_errors


def save_content(kind: str, content: "File[bytes]", expires_at: int, uploader: str = "") -> str:
    """Store a file and return its path. A sweep deletes the file after `expires_at`, unless that was reset before.

    `uploader`: the caller whose stored bytes it counts for.

    Raises:
        QuotaExceeded: when the uploader has stored too much.
        Busy: when the storage cannot be reached.
    """
    quota_checks.require_storage(uploader)
    path = f"{kind}/{uuid4()}"
    # The row is written first, so that no stored file is without a row.
    stored_payloads.reserve(path, clock.now(), expires_at, uploader or None)
    try:
        with storage_errors(path):
            blob_storage.put_payload(path, content)
    except BaseException:
        # A partial upload can be large: delete it now, not in the next sweep.
        with suppress(blob_storage.StorageUnavailable):
            blob_storage.delete_payload(path)
        release_content(path)
        raise
    stored_payloads.set_size(path, content.size)
    return path


def release_content(*paths: str) -> None:
    """Mark files as unused. A later sweep deletes them, after the requests that still read them."""
    stored_payloads.set_expiry(paths, clock.now())
