"""The body of a request as a file for a storage: read once, piece by piece, never held as a whole."""

import io
from collections.abc import Callable
from typing import NoReturn

from django.core.files.base import File
from django.http import HttpRequest

from ...core.errors import Invalid, RequestRefused
from .errors import InputTooLarge

CHUNK = 256 * 1024
BROKE_OFF = "The upload broke off before its end."


class Body(io.RawIOBase):
    """The bytes of a body, from the first to the last; there is no way back."""

    def __init__(self, source: Callable[[int], bytes], size: int | None, most: int) -> None:
        super().__init__()
        self._source, self._said, self._most = source, size, most
        self.taken = 0
        self.fault: RequestRefused | None = None
        """Why it cannot be read: storages put words of their own in its place."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """So many of the next bytes, fewer only at the end: storages make parts of them that must not be small."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(CHUNK), b""))
        pieces, left = [], size
        while left and (piece := self._piece(left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        left = size if self._said is None else min(size, self._said - self.taken)
        piece = self._next(left) if left else b""
        self.taken += len(piece)
        if self.taken > self._most:
            self._refuse(f"An artifact may have at most {self._most} bytes.", InputTooLarge)
        return piece

    def _next(self, size: int) -> bytes:
        try:
            piece = self._source(size)
        except Exception:
            return self._refuse(BROKE_OFF)
        return piece if piece or self._said is None else self._refuse(BROKE_OFF)

    def _refuse(self, why: str, kind: type[RequestRefused] = Invalid) -> NoReturn:
        self.fault = kind(why)
        raise self.fault


class RequestUpload(File):
    """A body, as storages take files."""

    def __init__(self, body: Body) -> None:
        super().__init__(body, name="upload")
        self.body = body

    @property
    def size(self) -> int:
        """The bytes that have been read: all of them, when it is kept."""
        return self.body.taken


def receive_upload(request: HttpRequest, most: int) -> RequestUpload:
    """What the request brings; raises Invalid and InputTooLarge."""
    if request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        # Django reads nothing of a body that does not say how long it is.
        return RequestUpload(Body(request.environ["wsgi.input"].read, None, most))
    size = request.META.get("CONTENT_LENGTH") or "0"
    if not (size.isascii() and size.isdigit()):
        raise Invalid("The Content-Length of the request is no number.")
    if int(size) > most:
        raise InputTooLarge(f"An artifact may have at most {most} bytes.")
    return RequestUpload(Body(request.read, int(size), most))
