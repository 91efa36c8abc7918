"""Where payloads are kept that are too large for rows: Django's storage `payloads`, a folder or S3. Knows no rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages

from . import conf

CHUNK_BYTES = 64 * 1024


class StorageUnavailable(Exception):
    """The storage cannot do this now, or the payload is not there."""


class StorageFileMissing(StorageUnavailable):
    """The storage is there, and the payload is not in it."""


def is_storage_configured() -> bool:
    """Whether this server keeps payloads outside its database at all."""
    return bool(conf.payload_storage)


def put_payload(path: str, content: bytes | File) -> bool:
    """Keep the content under this path; False where somebody else was first."""
    with _storage_error():
        kept_as = _storage().save(path, ContentFile(content) if isinstance(content, bytes) else content)
        if kept_as != path:
            _storage().delete(kept_as)
        return kept_as == path


def fetch_payload(path: str) -> bytes:
    """The content under this path."""
    with _storage_error(), _storage().open(path, "rb") as content:
        return content.read()


def stream_payload(path: str, part: range | None = None) -> Iterator[bytes]:
    """The same piece by piece, or a part of its bytes; it is opened at once."""
    with _storage_error():
        content = _storage().open(path, "rb")

    def pieces() -> Iterator[bytes]:
        with content:
            yield from content.chunks() if part is None else _read_range(content, part)

    return pieces()


def _read_range(content: File, part: range) -> Iterator[bytes]:
    content.seek(part.start)
    left = len(part)
    while left and (piece := content.read(min(left, CHUNK_BYTES))):
        left -= len(piece)
        yield piece


def read_payload_range(path: str, begin: int, most: int) -> bytes:
    """So many of its bytes, from one on."""
    with _storage_error(), _storage().open(path, "rb") as content:
        content.seek(begin)
        return content.read(most)


def delete_payload(path: str) -> None:
    """Keep it no longer; nothing happens where it is not there."""
    with _storage_error():
        _storage().delete(path)


@contextmanager
def _storage_error() -> Iterator[None]:
    """Whatever a storage raises is one thing to us, but that it has not got what is asked for."""
    try:
        yield
    except FileNotFoundError as error:
        # A folder that is not mounted has no folders in it either.
        is_mounted = not error.filename or Path(error.filename).parent.is_dir()
        raise (StorageFileMissing if is_mounted else StorageUnavailable)(str(error)) from error
    except Exception as error:
        raise StorageUnavailable(f"{type(error).__name__}: {error}") from error


@cache
def _storage() -> Storage:
    return storages[conf.payload_storage]
