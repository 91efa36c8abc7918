"""Where pages ended: a client that reads a long result page by page goes on there, instead of counting from the start.

Remembered for a minute in each process. A client that sends back the `queryId` it was given needs no memory of ours.
"""

import base64
import binascii
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from ... import clock

MOST_REMEMBERED, REMEMBER_MS = 2_000, 60_000


@dataclass(frozen=True, slots=True)
class PageEnd:
    """The last row of a page: how many rows end with it, its moment and its id."""

    start: int
    moment: Any
    id: str


class PageEnds:
    """Where the pages of one question ended."""

    def __init__(self, query: object, kind: type, query_id: str = "", skips_memory: bool = False) -> None:
        self.kind = kind
        self.digest = blake2b(orjson.dumps(query), digest_size=12).hexdigest()
        self.client_page_end, self.skips_memory = self.decode_query_id(query_id), skips_memory

    def find(self, start: int) -> PageEnd | None:
        """The place where the page before this one ended, if it is known."""
        if self.client_page_end and self.client_page_end.start == start:
            return self.client_page_end
        kept = None if self.skips_memory else _page_ends.get((self.digest, start))
        return kept[1] if kept and kept[0] > clock.now() else None

    def remember(self, page_end: PageEnd) -> None:
        """Keep it for the next page."""
        _page_ends.pop((self.digest, page_end.start), None)
        _page_ends[self.digest, page_end.start] = (clock.now() + REMEMBER_MS, page_end)
        while len(_page_ends) > MOST_REMEMBERED:
            _page_ends.popitem(last=False)

    def query_id(self, page_end: PageEnd) -> str:
        """The place as a client carries it."""
        return base64.urlsafe_b64encode(
            orjson.dumps([self.digest, page_end.start, page_end.moment, page_end.id])
        ).decode()

    def decode_query_id(self, query_id: str) -> PageEnd | None:
        """The place that a client brings back; nothing if it belongs to another question."""
        try:
            digest, start, moment, id = orjson.loads(base64.urlsafe_b64decode(query_id.encode()))
        except (ValueError, TypeError, binascii.Error):
            return None
        is_ours = digest == self.digest and isinstance(start, int) and isinstance(id, str)
        return PageEnd(start, moment, id) if is_ours and isinstance(moment, self.kind) else None


_page_ends: OrderedDict[tuple[str, int], tuple[int, PageEnd]] = OrderedDict()
