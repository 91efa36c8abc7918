"""Search for runs and tasks in Conductor's query language (api §6), with some extensions.

    grammar      parses a query into a tree of conditions
    search_query turns the tree into one condition on rows, and chooses the index that leads
    fields       and numbers, words, payloads, documents: turn one comparison into a condition
    runs, tasks  tables of the searchable fields
    pages        ids in order, total, and how far the search scanned
    places       remembers where pages ended
    summaries    what a list shows of each hit

`python -m qa.bench.search` measures the processor time of a page of 100 hits with its total. SQLite, 1,000,000 runs:
5 to 55 ms for an indexed field, 55 to 75 ms for a full index scan (version, priority, createdBy), 30 to 135 ms for a
bounded search of documents and patterns, up to 200 ms for free text. PostgreSQL, 200,000 runs with 600,000 tasks:
5 to 35 ms, and 30 to 135 ms for bounded searches.
"""

from .compiler import SearchQuery
from .parser import Clause, QueryValue
from .results import PageEnds, Search, SearchPage
from .tables import RUNS, TASKS

__all__ = ["RUNS", "TASKS", "Clause", "PageEnds", "QueryValue", "Search", "SearchPage", "SearchQuery"]
