"""Slashes inside names, which the SDKs send as `%2F`: told from those between the parts of an address.

Web servers decode an address before anybody can look. So what stood there as `%2F` is marked until it is known which
part of which address it belongs to.
"""

import re
from urllib.parse import quote, unquote_to_bytes

MARK = "\uf02f"
"""A character of no script, which nobody uses in a name."""
OURS = re.compile(r"/api/(?!(?:queue|object|artifacts|auth)/v1/)")
ENCODED = re.compile("%2f", re.IGNORECASE)


def mark_slashes(target: str) -> str | None:
    """The path of a request's target as WSGI spells it, with marks; None where there is nothing to mark."""
    path = target.partition("?")[0]
    if not (ENCODED.search(path) and OURS.match(path)):
        return None
    return unquote_to_bytes(ENCODED.sub(quote(MARK), path)).decode("latin-1")


def unmark_slashes(parts: dict[str, str]) -> dict[str, str]:
    """The parts of an address, with slashes where they were sent."""
    return {name: part.replace(MARK, "/") for name, part in parts.items()}
