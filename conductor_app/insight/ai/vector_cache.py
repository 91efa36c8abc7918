"""The compact vectors of indexes that this process has searched, up to AI_SEARCH_CACHE_MB."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

from ... import conf, process_state
from ...conf import MIB
from ...process_state import Slot
from .compact_vectors import CompactPage

Key = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """The vectors of one namespace, or of all of an index, as of a version. `dimensions`: 0 without documents."""

    version: str
    dimensions: int
    pages: list[CompactPage]

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return sum(page.size for page in self.pages)


_cached: Slot[OrderedDict[Key, CachedVectors]] = process_state.slot(OrderedDict)
"""The least recently used first."""
_changing, _loading = Lock(), Lock()


def cached_vectors(key: Key, version: str, load: Callable[[], Iterator[CompactPage]]) -> CachedVectors | None:
    """Return the vectors of a version, from the cache or loaded; None without a version or if they are too large.

    `load`: yields the pages. Only one thread at a time loads.
    """
    if (found := _find(key, version)) is not None:
        return found
    most = conf.ai_search_cache_mb * MIB
    if not most or not version:
        return None
    with _loading:
        if (found := _find(key, version)) is not None:
            return found
        pages, size = [], 0
        for page in load():
            pages.append(page)
            size += page.size
            if size > most:
                return None
        vectors = CachedVectors(version, pages[0].codes.shape[1] if pages else 0, pages)
        _keep(key, vectors, most)
        return vectors


def _find(key: Key, version: str) -> CachedVectors | None:
    with _changing:
        cached = _cached.value
        found = cached.get(key)
        if found is None or found.version != version:
            return None
        cached.move_to_end(key)
        return found


def _keep(key: Key, vectors: CachedVectors, most: int) -> None:
    cached = _cached.value
    with _changing:
        cached.pop(key, None)
        cached[key] = vectors
        size = sum(each.size for each in cached.values())
        while size > most:
            _, oldest = cached.popitem(last=False)
            size -= oldest.size
