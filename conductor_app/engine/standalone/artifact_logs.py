"""Pages of text artifacts, from the end, for the admin pages."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ... import blob_storage
from ...core.errors import Invalid, NotFound
from ...core.standalone.artifacts import LINK
from ...models import Artifact
from ..payloads.payload_storage import storage_errors
from .artifacts import find

PAGE = 64 * 1024
MAX_UNPACKED = 32 * 1024 * 1024
"""The limit up to which compressed logs are decompressed. Users must download the others to see their ends."""
MAX_LINKS = 5
GZIP = 31
"""The `wbits` of zlib for the gzip format."""


@dataclass(frozen=True, slots=True)
class TextPage:
    """A part of a text with its position in bytes. `is_cut`: the text continues after the decompressed part."""

    content: bytes
    begin: int
    end: int
    total: int
    is_cut: bool = False


def resolve_link(task_id: str, number: int, name: str) -> Artifact:
    """Return the artifact of a name, following links.

    Raises:
        NotFound: when there is no such artifact, or there are too many links.
    """
    for _ in range(MAX_LINKS):
        row = find(task_id, number, name)
        if row.kind != LINK:
            return row
        name = row.details["artifact"]
    raise NotFound(f"The links of artifact {name} do not lead to an artifact.")


def read_page(row: Artifact, until: int | None = None) -> TextPage:
    """Return the last page of an artifact's content, or the page that ends at the byte `until`.

    Raises:
        NotFound: when the content is not stored on this server.
        Invalid: when the content has an unknown encoding, or is corrupt.
        Busy: when the storage cannot be reached.
    """
    if not row.path:
        raise NotFound(f"The content of artifact {row.name} is not stored on this server.")
    if row.content_encoding not in ("", "identity", "gzip"):
        raise Invalid(f"Artifact {row.name} has the encoding {row.content_encoding}, which cannot be shown.")
    with storage_errors(row.path):
        return _read_compressed_page(row, until) if row.content_encoding == "gzip" else _read_plain_page(row, until)


def _read_plain_page(row: Artifact, until: int | None) -> TextPage:
    end = row.size if until is None else min(until, row.size)
    begin = max(end - PAGE, 0)
    return _text_page(blob_storage.read_payload_range(row.path, begin, end - begin), end, row.size)


def _read_compressed_page(row: Artifact, until: int | None) -> TextPage:
    """Decompress the content from its start, keeping only one page in memory.

    Raises:
        Invalid: when the content is not valid gzip data.
    """
    tail, total = bytearray(), 0
    stop = MAX_UNPACKED if until is None else min(until, MAX_UNPACKED)
    try:
        for some in _decompress(blob_storage.stream_payload(row.path)):
            some = some[: stop - total]
            total += len(some)
            tail += some
            del tail[:-PAGE]
            if total >= stop:
                break
    except zlib.error as broken:
        raise Invalid(f"Artifact {row.name} is not valid gzip data.") from broken
    is_cut = until is None and total >= MAX_UNPACKED
    return _text_page(bytes(tail), total, total, is_cut)


def _text_page(content: bytes, end: int, total: int, is_cut: bool = False) -> TextPage:
    """Return a page that starts with a complete line, if it has one. The previous page has the rest of a cut line."""
    if len(content) < end:
        content = content.partition(b"\n")[2] or content
    return TextPage(content, end - len(content), end, total, is_cut)


def _decompress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the decompressed content in chunks of at most PAGE bytes. Concatenated gzip members are one text."""
    unpacker = zlib.decompressobj(wbits=GZIP)
    for chunk in chunks:
        while chunk:
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=GZIP)
            yield unpacker.decompress(chunk, PAGE)
            chunk = unpacker.unused_data or unpacker.unconsumed_tail
