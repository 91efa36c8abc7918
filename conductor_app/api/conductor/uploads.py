"""Request bodies that are files: read in chunks and stored in a seekable temporary file."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile

from django.core.files.base import File
from django.http import HttpRequest
from django.http.request import UnreadablePostError

from ...core.errors import Invalid, PayloadTooLarge
from . import request_body

CHUNK_BYTES = 64 * 1024
MAX_MEMORY_BYTES = 1024 * 1024
UPLOAD_INTERRUPTED = "The upload broke off before its end."


class ReceivedFile(File):
    """An uploaded file with its SHA-256 digest."""

    def __init__(self, file: SpooledTemporaryFile, size: int, digest: str) -> None:
        super().__init__(file)
        self.size, self.digest = size, digest


@contextmanager
def receive_body(request: HttpRequest, max_bytes: int) -> Iterator[ReceivedFile]:
    """Receive the body of a request in a temporary file.

    Raises:
        PayloadTooLarge: when it exceeds `max_bytes`
        Invalid: when the client disconnects.
    """
    size, digest = 0, hashlib.sha256()
    with SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES) as file:
        for chunk in _read_chunks(request, max_bytes):
            size += len(chunk)
            if size > max_bytes:
                raise PayloadTooLarge(f"An upload may have at most {max_bytes} bytes.")
            digest.update(chunk)
            file.write(chunk)
        file.seek(0)
        yield ReceivedFile(file, size, digest.hexdigest())


def _read_chunks(request: HttpRequest, max_bytes: int) -> Iterator[bytes]:
    if request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        # Django does not read a body without a Content-Length.
        yield from iter(lambda: _read_chunk(request.environ["wsgi.input"].read, CHUNK_BYTES), b"")
        return
    remaining = request_body.content_length(request, max_bytes)
    while remaining:
        if not (chunk := _read_chunk(request.read, min(remaining, CHUNK_BYTES))):
            raise Invalid(UPLOAD_INTERRUPTED)
        remaining -= len(chunk)
        yield chunk


def _read_chunk(read: Callable[[int], bytes], size: int) -> bytes:
    try:
        return read(size)
    except (UnreadablePostError, OSError):
        raise Invalid(UPLOAD_INTERRUPTED) from None
