"""Lists that FOR_EACH steps go through, as this process has read them: else every item would cost its whole list."""

from collections import OrderedDict
from threading import Lock
from typing import Any

MOST_ITEMS = 500_000
"""Items that a process remembers, of all lists together."""


class ItemListCache:
    """Lists by the attempt whose input they are: that is written once, so nothing here grows old."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lists: OrderedDict[str, list[Any]] = OrderedDict()

    def keys(self) -> set[str]:
        """The attempts whose lists are known."""
        with self._lock:
            return set(self._lists)

    def keep(self, attempt_id: str, items: list[Any]) -> None:
        """Remember a list; those that were not asked for the longest are forgotten, never this one."""
        with self._lock:
            self._lists[attempt_id] = items
            self._lists.move_to_end(attempt_id)
            while len(self._lists) > 1 and sum(map(len, self._lists.values())) > MOST_ITEMS:
                self._lists.popitem(last=False)

    def item(self, attempt_id: str, index: int) -> Any:
        """One item of a known list."""
        with self._lock:
            self._lists.move_to_end(attempt_id)
            return self._lists[attempt_id][index]


item_lists = ItemListCache()
