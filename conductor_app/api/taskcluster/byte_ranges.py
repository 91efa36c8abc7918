"""The requested part of a content: one range of its bytes (RFC 9110 §14)."""

import re

RANGE_PATTERN = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def parse_range(header: str, size: int) -> range | None:
    """Return the requested bytes, or an empty range if there are no such bytes.

    Returns None for the whole content: without a header, for an invalid one, and for a list of ranges.
    """
    match = RANGE_PATTERN.fullmatch(header.strip())
    if match is None or match[0] == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return range(max(size - int(last), 0), size)
    if last and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1, size) if last else size)
