"""Split a text into chunks that overlap."""

from collections.abc import Iterator

SEPARATORS = ("\n\n", "\n", " ")
"""Where a chunk may end, the best place first."""


def split_text(text: str, size: int, overlap: int) -> Iterator[str]:
    """Yield chunks of at most `size` characters; each repeats up to `overlap` characters of the one before.

    A chunk ends at a paragraph, a line or a word if one ends in its second half.
    """
    begin = 0
    while len(text) - begin > size:
        end = _chunk_end(text, begin, begin + size)
        yield text[begin:end]
        begin = max(end - overlap, begin + 1)
    yield text[begin:]


def _chunk_end(text: str, begin: int, limit: int) -> int:
    """Return the end of a chunk, behind its last separator."""
    for separator in SEPARATORS:
        place = text.rfind(separator, begin + (limit - begin) // 2, limit)
        if place >= 0:
            return place + len(separator)
    return limit
