"""Writes of the rows of payloads and files in blob storage. A sweep deletes the content of expired rows."""

from collections.abc import Iterable

from ..models import PayloadReference, StoredPayload


def reserve(path: str, now: int, expires_at: int, uploader: str | None = None) -> None:
    """Write the row before the content is stored, so that all content in blob storage has a row.

    `uploader`: the caller who sends the content, None for content of the server.
    """
    StoredPayload.objects.create(path=path, created_at=now, expires_at=expires_at, uploader=uploader)


def is_reserved(path: str) -> bool:
    """Return True if the path has a row."""
    return StoredPayload.objects.filter(pk=path).exists()


def begin_upload(path: str, expires_at: int) -> bool:
    """Make the content unusable until its size is set. Returns False if it is in use and cannot be replaced."""
    unused = StoredPayload.objects.filter(pk=path, expires_at__isnull=False)
    return bool(unused.update(size=None, expires_at=expires_at))


def set_size(path: str, size: int) -> None:
    """Set the size in bytes, which makes the content usable."""
    StoredPayload.objects.filter(pk=path).update(size=size)


def set_expiry(paths: Iterable[str], expires_at: int) -> None:
    """Set the time from which the content may be deleted."""
    StoredPayload.objects.filter(pk__in=list(paths)).update(expires_at=expires_at)


def keep_for_run(path: str, run_id: str) -> None:
    """Keep the content as long as a run refers to it."""
    StoredPayload.objects.filter(pk=path).update(expires_at=None)
    PayloadReference.objects.create(payload_id=path, run_id=run_id)
