"""Cache of the lists of FOR_EACH steps. Without it, each item would load the whole list."""

from collections import OrderedDict
from threading import Lock
from typing import Any

from .. import process_state

MAX_ITEMS = 500_000
"""The maximum number of cached items per process, over all lists."""


class ItemListCache:
    """Lists, by the attempt with the list in its input. Inputs never change, so entries never expire."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lists: OrderedDict[str, list[Any]] = OrderedDict()

    def keys(self) -> set[str]:
        """Return the attempts whose lists are cached."""
        with self._lock:
            return set(self._lists)

    def put(self, attempt_id: str, items: list[Any]) -> None:
        """Cache a list. Evicts the least recently used lists, but never this one."""
        with self._lock:
            self._lists[attempt_id] = items
            self._lists.move_to_end(attempt_id)
            while len(self._lists) > 1 and sum(map(len, self._lists.values())) > MAX_ITEMS:
                self._lists.popitem(last=False)

    def item(self, attempt_id: str, index: int) -> Any:
        """Return one item of a cached list."""
        with self._lock:
            self._lists.move_to_end(attempt_id)
            return self._lists[attempt_id][index]


item_lists = process_state.slot(ItemListCache)
