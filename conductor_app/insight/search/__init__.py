"""Searching runs and tasks in the language that clients know (api §6), and in a little more of it.

    grammar     text → a tree of conditions          questions   the tree → one condition on rows, and what leads
    fields …    what each field makes of a clause    pages       ids in order, how many, and how far was looked
    runs, tasks the tables of fields                 summaries   what a list shows of each hit

`python -m tests.bench.search` measures. Processor time of a page of 100 and its total: on SQLite over 1,000,000 runs
5 to 55 ms for a field with an index, 55 to 75 ms where one is read from end to end (version, priority, createdBy),
30 to 135 ms for a bounded search of documents and patterns, up to 200 ms for free text; on PostgreSQL, 200,000 runs
with 600,000 tasks, 5 to 35 ms, and 30 to 135 ms for what is bounded.
"""

from .grammar import Clause, QueryValue
from .pages import Search, SearchPage
from .places import PageEnds
from .runs import RUNS
from .search_query import SearchQuery
from .tasks import TASKS

__all__ = ["RUNS", "TASKS", "Clause", "PageEnds", "QueryValue", "Search", "SearchPage", "SearchQuery"]
