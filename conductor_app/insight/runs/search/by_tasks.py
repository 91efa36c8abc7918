"""Search for runs by their tasks: distinct runs, ordered by their newest matching task."""

from .result_pages import MAX_COUNTED, Search, SearchPage

MAX_HITS = 400_000


def runs_of_tasks(search: Search, start: int, size: int) -> SearchPage:
    """Return a page of distinct runs.

    `search` returns the run id of each matching task. Only as many hits are read as the page needs.
    """
    wanted, hits = start + size, min(MAX_COUNTED, 4 * (start + size) + 100)
    while True:
        found = search.page(0, hits)
        runs = list(dict.fromkeys(found.ids))
        is_all = len(found.ids) < hits
        if is_all or hits >= MAX_HITS or (len(runs) > wanted and hits >= MAX_COUNTED):
            return SearchPage(runs[start:wanted], len(runs), is_all and found.is_exact, found.since)
        hits = max(MAX_COUNTED, 4 * hits)
