"""Slashes inside names, which SDKs send as `%2F`, as opposed to those between path segments.

Web servers decode the path before any application code runs. So each `%2F` is replaced with a mark until the path is
split into its parameters.
"""

import re
from typing import Any
from urllib.parse import quote, unquote_to_bytes

SLASH_MARK = "\uf02f"
"""A character of the private use area, which no name contains."""
CONDUCTOR_PATH = re.compile(r"/api/(?!(?:queue|object|artifacts|auth)/v1/)")
ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)


def mark_slashes(target: str) -> str | None:
    """Return the path of a request's target as WSGI represents it, with marks; None if it has no encoded slash."""
    path = target.partition("?")[0]
    if not (ENCODED_SLASH.search(path) and CONDUCTOR_PATH.match(path)):
        return None
    return unquote_to_bytes(ENCODED_SLASH.sub(quote(SLASH_MARK), path)).decode("latin-1")


def unmark_slashes(url_kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return path parameters with the marks replaced by slashes. Numbers stay as they are."""
    return {
        name: value.replace(SLASH_MARK, "/") if isinstance(value, str) else value for name, value in url_kwargs.items()
    }
