"""Ends of pages: a client that reads a long result page by page continues there, instead of skipping all rows before.

Each process remembers the ends for a minute. A client that returns its `queryId` does not depend on that.
"""

import base64
import binascii
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from .... import clock, process_state
from ....process_state import Slot

MAX_REMEMBERED, REMEMBER_MS = 2_000, 60_000


@dataclass(frozen=True, slots=True)
class PageEnd:
    """End of a page: number of rows up to its last row, creation time and id of that row."""

    start: int
    moment: Any
    id: str


class PageEnds:
    """Ends of the pages of one query."""

    def __init__(self, query: object, kind: type, query_id: str = "", skips_memory: bool = False) -> None:
        self.kind = kind
        self.digest = blake2b(orjson.dumps(query), digest_size=12).hexdigest()
        self.client_page_end, self.skips_memory = self.decode_query_id(query_id), skips_memory

    def find(self, start: int) -> PageEnd | None:
        """Return the end of the page before `start`, if it is known."""
        if self.client_page_end and self.client_page_end.start == start:
            return self.client_page_end
        entry = None if self.skips_memory else _page_ends.value.get((self.digest, start))
        return entry[1] if entry and entry[0] > clock.now() else None

    def remember(self, page_end: PageEnd) -> None:
        """Remember the end of a page for the next request."""
        page_ends = _page_ends.value
        page_ends.pop((self.digest, page_end.start), None)
        page_ends[self.digest, page_end.start] = (clock.now() + REMEMBER_MS, page_end)
        while len(page_ends) > MAX_REMEMBERED:
            page_ends.popitem(last=False)

    def query_id(self, page_end: PageEnd) -> str:
        """Encode the end of a page as the `queryId` of a client."""
        return base64.urlsafe_b64encode(
            orjson.dumps([self.digest, page_end.start, page_end.moment, page_end.id])
        ).decode()

    def decode_query_id(self, query_id: str) -> PageEnd | None:
        """Decode the `queryId` of a client, or return None if it is invalid or belongs to another query."""
        try:
            digest, start, moment, id = orjson.loads(base64.urlsafe_b64decode(query_id.encode()))
        except (ValueError, TypeError, binascii.Error):
            return None
        is_ours = digest == self.digest and isinstance(start, int) and isinstance(id, str)
        return PageEnd(start, moment, id) if is_ours and isinstance(moment, self.kind) else None


_page_ends: Slot[OrderedDict[tuple[str, int], tuple[int, PageEnd]]] = process_state.slot(OrderedDict)
