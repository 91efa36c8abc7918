"""Slashes inside names, which the SDKs send as `%2F`: told from those between the parts of an address.

Web servers decode an address before anybody can look. So what stood there as `%2F` is marked until it is known which
part of which address it belongs to.
"""

import re
from urllib.parse import quote, unquote_to_bytes

SLASH_MARK = "\uf02f"
"""A character of no script, which nobody uses in a name."""
CONDUCTOR_PATH = re.compile(r"/api/(?!(?:queue|object|artifacts|auth)/v1/)")
ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)


def mark_slashes(target: str) -> str | None:
    """The path of a request's target as WSGI spells it, with marks; None where there is nothing to mark."""
    path = target.partition("?")[0]
    if not (ENCODED_SLASH.search(path) and CONDUCTOR_PATH.match(path)):
        return None
    return unquote_to_bytes(ENCODED_SLASH.sub(quote(SLASH_MARK), path)).decode("latin-1")


def unmark_slashes(url_kwargs: dict[str, str]) -> dict[str, str]:
    """The parts of an address, with slashes where they were sent."""
    return {name: value.replace(SLASH_MARK, "/") for name, value in url_kwargs.items()}
