"""Bodies that are files: read piece by piece, never held as a whole, and laid where storages can go back and forth."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile

from django.core.files.base import File
from django.http import HttpRequest
from django.http.request import UnreadablePostError

from ...core.errors import Invalid, PayloadTooLarge
from . import request_body

CHUNK = 64 * 1024
KEPT_IN_MEMORY = 1024 * 1024
BROKE_OFF = "The upload broke off before its end."


class ReceivedFile(File):
    """What a request has brought, with the SHA-256 of it."""

    def __init__(self, kept: SpooledTemporaryFile, size: int, digest: str) -> None:
        super().__init__(kept)
        self.size, self.digest = size, digest


@contextmanager
def receive_body(request: HttpRequest, most: int) -> Iterator[ReceivedFile]:
    """The body of a request; raises Invalid where it breaks off, and TooLarge."""
    size, digest = 0, hashlib.sha256()
    with SpooledTemporaryFile(max_size=KEPT_IN_MEMORY) as kept:
        for piece in _pieces(request, most):
            size += len(piece)
            if size > most:
                raise PayloadTooLarge(f"An upload may have at most {most} bytes.")
            digest.update(piece)
            kept.write(piece)
        kept.seek(0)
        yield ReceivedFile(kept, size, digest.hexdigest())


def _pieces(request: HttpRequest, most: int) -> Iterator[bytes]:
    if request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        # Django reads nothing of a body that does not say how long it is.
        yield from iter(lambda: _piece(request.environ["wsgi.input"].read, CHUNK), b"")
        return
    left = request_body.content_length(request, most)
    while left:
        if not (piece := _piece(request.read, min(left, CHUNK))):
            raise Invalid(BROKE_OFF)
        left -= len(piece)
        yield piece


def _piece(read: Callable[[int], bytes], size: int) -> bytes:
    try:
        return read(size)
    except (UnreadablePostError, OSError):
        raise Invalid(BROKE_OFF) from None
