"""The end of an artifact that is text, a page at a time, for people who read it."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ... import blob_storage
from ...core.errors import Invalid, NotFound
from ...core.standalone.artifacts import LINK
from ...models import Artifact
from ..payloads import storage_errors
from .entries import find

PAGE = 64 * 1024
MOST_UNPACKED = 32 * 1024 * 1024
"""What is packed is unpacked up to here: the rest of such a log is for those who download it."""
MOST_LINKS = 5
GZIP = 31
"""What zlib is told to read the frame that the tool of this name writes."""


@dataclass(frozen=True, slots=True)
class TextPage:
    """Some bytes of a text, and where they stand in it. `is_cut`: there is more than was unpacked."""

    content: bytes
    begin: int
    end: int
    total: int
    is_cut: bool = False


def resolve_link(task_id: str, number: int, name: str) -> Artifact:
    """The artifact that a name stands for, behind its links. Raises NotFound."""
    for _ in range(MOST_LINKS):
        row = find(task_id, number, name)
        if row.kind != LINK:
            return row
        name = row.details["artifact"]
    raise NotFound(f"The links from artifact {name} lead nowhere.")


def read_page(row: Artifact, until: int | None = None) -> TextPage:
    """The last page of what is kept here, or the one that ends at a place. Raises NotFound, Invalid and Busy."""
    if not row.path:
        raise NotFound(f"The content of artifact {row.name} is not kept here.")
    if row.content_encoding not in ("", "identity", "gzip"):
        raise Invalid(f"Artifact {row.name} is encoded as {row.content_encoding}, which is not read here.")
    with storage_errors(row.path):
        return _read_compressed_page(row, until) if row.content_encoding == "gzip" else _read_plain_page(row, until)


def _read_plain_page(row: Artifact, until: int | None) -> TextPage:
    end = row.size if until is None else min(until, row.size)
    begin = max(end - PAGE, 0)
    return _text_page(blob_storage.read_payload_range(row.path, begin, end - begin), end, row.size)


def _read_compressed_page(row: Artifact, until: int | None) -> TextPage:
    """Unpacked from its beginning, of which only one page is kept."""
    kept, total = bytearray(), 0
    stop = MOST_UNPACKED if until is None else min(until, MOST_UNPACKED)
    try:
        for some in _decompress(blob_storage.stream_payload(row.path)):
            some = some[: stop - total]
            total += len(some)
            kept += some
            del kept[:-PAGE]
            if total >= stop:
                break
    except zlib.error as broken:
        raise Invalid(f"Artifact {row.name} is not packed as it says.") from broken
    is_cut = until is None and total >= MOST_UNPACKED
    return _text_page(bytes(kept), total, total, is_cut)


def _text_page(content: bytes, end: int, total: int, is_cut: bool = False) -> TextPage:
    """It begins with a whole line, if it holds one: the rest of the first one is on the page before."""
    if len(content) < end:
        content = content.partition(b"\n")[2] or content
    return TextPage(content, end - len(content), end, total, is_cut)


def _decompress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Piece by piece, none larger than a page, however tightly it is packed; what was packed in parts is one text."""
    unpacker = zlib.decompressobj(wbits=GZIP)
    for chunk in chunks:
        while chunk:
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=GZIP)
            yield unpacker.decompress(chunk, PAGE)
            chunk = unpacker.unused_data or unpacker.unconsumed_tail
