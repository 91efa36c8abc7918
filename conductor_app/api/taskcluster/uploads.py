"""Request bodies as files for a storage: read once, in chunks."""

import io
from collections.abc import Callable
from typing import NoReturn

from django.core.files.base import File
from django.http import HttpRequest

from ...core.errors import Invalid, RequestRefused
from .errors import InputTooLarge

CHUNK_BYTES = 256 * 1024
UPLOAD_INTERRUPTED = "The upload broke off before its end."


class RequestBodyStream(io.RawIOBase):
    """Stream of a request body. It can be read once, from start to end."""

    def __init__(self, source: Callable[[int], bytes], size: int | None, max_bytes: int) -> None:
        super().__init__()
        self._source, self._declared_size, self._max_bytes = source, size, max_bytes
        self.bytes_read = 0
        self.read_error: RequestRefused | None = None
        """Why it cannot be read: storages put words of their own in its place."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return the next `size` bytes, fewer only at the end: storages make parts of them that must not be small."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))
        chunks, remaining = [], size
        while remaining and (chunk := self._read_chunk(remaining)):
            chunks.append(chunk)
            remaining -= len(chunk)
        return b"".join(chunks)

    def _read_chunk(self, size: int) -> bytes:
        remaining = size if self._declared_size is None else min(size, self._declared_size - self.bytes_read)
        chunk = self._read_source(remaining) if remaining else b""
        self.bytes_read += len(chunk)
        if self.bytes_read > self._max_bytes:
            self._fail_with(f"An artifact may have at most {self._max_bytes} bytes.", InputTooLarge)
        return chunk

    def _read_source(self, size: int) -> bytes:
        try:
            chunk = self._source(size)
        except Exception:
            return self._fail_with(UPLOAD_INTERRUPTED)
        return chunk if chunk or self._declared_size is None else self._fail_with(UPLOAD_INTERRUPTED)

    def _fail_with(self, message: str, kind: type[RequestRefused] = Invalid) -> NoReturn:
        self.read_error = kind(message)
        raise self.read_error


class RequestUpload(File):
    """A request body as an uploaded file."""

    def __init__(self, body: RequestBodyStream) -> None:
        super().__init__(body, name="upload")
        self.body = body

    @property
    def size(self) -> int:
        """Return the number of bytes read so far, which is all of them once the content is stored."""
        return self.body.bytes_read


def receive_upload(request: HttpRequest, max_bytes: int) -> RequestUpload:
    """Return the upload of a request.

    Raises:
        Invalid: when the length is invalid
        InputTooLarge: when it exceeds `max_bytes`.
    """
    if request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        # Django does not read a body without a Content-Length.
        return RequestUpload(RequestBodyStream(request.environ["wsgi.input"].read, None, max_bytes))
    size = request.META.get("CONTENT_LENGTH") or "0"
    if not (size.isascii() and size.isdigit()):
        raise Invalid("Invalid Content-Length: it must be a number.")
    if int(size) > max_bytes:
        raise InputTooLarge(f"An artifact may have at most {max_bytes} bytes.")
    return RequestUpload(RequestBodyStream(request.read, int(size), max_bytes))
