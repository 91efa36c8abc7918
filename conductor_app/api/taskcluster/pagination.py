"""Pagination of lists: `limit` is the page size, `continuationToken` the previous end (taskcluster §1.3)."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.errors import Invalid

MAX_PAGE_SIZE = 1000
PAGE_QUERY_OPTIONS = ("continuationToken", "limit")
"""The options of a list."""


class PageOptions(NamedTuple):
    """The requested page: its size, and the position after which it starts."""

    size: int
    after: tuple[Any, ...]

    def reply(self, name: str, rows: Sequence[Any], position: Callable[[Any], Sequence[Any]], show: Callable) -> dict:
        """Return the page, and a continuation token if there is one row more than fits on it."""
        rows_on_page = rows[: self.size]
        document = {name: [show(row) for row in rows_on_page]}
        return document | (
            {"continuationToken": _format_token(position(rows_on_page[-1]))} if len(rows) > self.size else {}
        )


def parse_page(options: Mapping[str, str], *position_types: type) -> PageOptions:
    """Return the requested page. `position_types`: the types of a position's parts.

    Raises:
        Invalid: when the token or the limit is invalid.
    """
    limit = options.get("limit", "")
    size = min(int(limit[:9] or MAX_PAGE_SIZE), MAX_PAGE_SIZE) or MAX_PAGE_SIZE
    token = options.get("continuationToken", "")
    return PageOptions(size, _parse_token(token, position_types) if token else ())


def _format_token(position: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(position)).encode()).decode().rstrip("=")


def _parse_token(token: str, position_types: tuple[type, ...]) -> tuple[Any, ...]:
    try:
        position = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, RecursionError):
        position = None
    is_valid = isinstance(position, list) and [type(each) for each in position] == list(position_types)
    if not is_valid or any("\0" in each if isinstance(each, str) else abs(each) >= 2**63 for each in position):
        raise Invalid("Invalid continuationToken. Use a token from an earlier response of this server.")
    return tuple(position)
