"""Content of large payloads, in a Django storage: a folder or a bucket. `payloads/store.py` writes their rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages

from ..core.errors import StorageFileMissing, StorageUnavailable
from ..settings import conf

CHUNK_BYTES = 64 * 1024


def is_storage_configured() -> bool:
    """Return True if this server stores payloads outside its database."""
    return bool(conf.payload_storage)


def put_payload(path: str, content: bytes | File) -> bool:
    """Store the content under this path. Returns False if the path exists.

    Raises:
        StorageUnavailable: when the storage cannot be reached.
    """
    with _storage_error():
        stored_path = _storage().save(path, ContentFile(content) if isinstance(content, bytes) else content)
        if stored_path != path:
            _storage().delete(stored_path)
        return stored_path == path


def has_payload(path: str) -> bool:
    """Return True if the storage has content under this path.

    Raises:
        StorageUnavailable: when the storage cannot be reached.
    """
    with _storage_error():
        return _storage().exists(path)


def fetch_payload(path: str) -> bytes:
    """Return the content under this path.

    Raises:
        StorageUnavailable: when the storage cannot be reached, or does not have the content.
    """
    with _storage_error(), _storage().open(path, "rb") as content:
        return content.read()


def stream_payload(path: str, part: range | None = None) -> Iterator[bytes]:
    """Return an iterator over the content, or a range of it, in chunks. The file is opened by this call.

    Raises:
        StorageUnavailable: when the storage cannot be reached, or does not have the content.
    """
    with _storage_error():
        content = _storage().open(path, "rb")

    def chunks() -> Iterator[bytes]:
        with content:
            yield from content.chunks() if part is None else _read_range(content, part)

    return chunks()


def _read_range(content: File, part: range) -> Iterator[bytes]:
    content.seek(part.start)
    remaining = len(part)
    while remaining and (piece := content.read(min(remaining, CHUNK_BYTES))):
        remaining -= len(piece)
        yield piece


def read_payload_range(path: str, begin: int, most: int) -> bytes:
    """Return at most `most` bytes from position `begin`.

    Raises:
        StorageUnavailable: when the storage cannot be reached, or does not have the content.
    """
    with _storage_error(), _storage().open(path, "rb") as content:
        content.seek(begin)
        return content.read(most)


def delete_payload(path: str) -> None:
    """Delete the content, if it exists.

    Raises:
        StorageUnavailable: when the storage cannot be reached.
    """
    with _storage_error():
        _storage().delete(path)


@contextmanager
def _storage_error() -> Iterator[None]:
    """Convert all errors of storages into StorageUnavailable, or StorageFileMissing for a missing file."""
    try:
        yield
    except FileNotFoundError as error:
        # If the folder of the file is missing, the storage may not be mounted.
        is_mounted = not error.filename or Path(error.filename).parent.is_dir()
        raise (StorageFileMissing if is_mounted else StorageUnavailable)(str(error)) from error
    except Exception as error:
        raise StorageUnavailable(f"{type(error).__name__}: {error}") from error


@cache
def _storage() -> Storage:
    return storages[conf.payload_storage]
