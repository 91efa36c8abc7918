"""Pages of search results: ids in order, and the total.

The total is exact up to 10,000. Above that, it is a lower bound that always exceeds the end of the requested page while
there are more hits, so that a client that continues while `start < totalHits` sees everything.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F, OrderBy, Q, QuerySet

from .page_ends import PageEnd, PageEnds
from .query_compiler import SearchQuery
from .search_sql import Unordered, disable_bulk_joins

MAX_COUNTED = 10_000
"""Maximum number of hits that are counted."""
MAX_SORTED = 50_000
"""Maximum number of hits that are sorted by a field without an index, newest first."""
MAX_OLDER = 100
"""Maximum number of rows outside the scanned range that an exact match of free text adds."""
DEEP_PAGE_START = 1_000
"""First row from which a page starts at the remembered end of the page before."""

Sort = tuple[str, bool]
"""A column, and True for descending order."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Ids in order. `is_exact`: True if `total` is exact. `since`: rows created before were not scanned."""

    ids: list[str]
    total: int
    is_exact: bool = True
    since: Any = None
    page_end: PageEnd | None = None


class Search:
    """A query on the rows of one table."""

    def __init__(
        self, rows: QuerySet, query: SearchQuery, sorts: list[Sort] | None = None, hit_column: str = "pk"
    ) -> None:
        """Prepare the search. `hit_column`: the column that pages return."""
        self.query, self.language, self.hit_column = query, query.language, hit_column
        self.newest = self.language.newest
        self.sorts = sorts or []
        self.descends = True
        if len(self.sorts) == 1 and self.sorts[0][0] == self.newest:
            [(_, self.descends)], self.sorts = self.sorts, []
        self.rows = rows.order_by()
        self.since = self.find_scan_start()
        self.matched = self.within_scan(query.condition())
        self.counts: dict[int, int] = {}

    def hits(self) -> QuerySet:
        """Return all hits in display order, for callers that paginate themselves."""
        matched = self.matched
        if not self.query.is_ordered and self.count(0) > MAX_COUNTED:
            matched = self.within_scan(self.query.condition(without_lead_index=True))
        return matched.order_by(*self.order())

    def page(self, start: int, size: int, places: PageEnds | None = None) -> SearchPage:
        """Return the hits from `start` on. Older exact matches of free text, outside the scanned range, come last."""
        page = self.bounded_page(start, size, places)
        if self.since is None or not self.query.words or not page.is_exact:
            return page
        older_hits = self.older_hits()
        more = older_hits[max(start - page.total, 0) : max(start + size - page.total, 0)]
        return replace(page, ids=[*page.ids, *more], total=page.total + len(older_hits))

    def older_hits(self) -> list[str]:
        """Return the rows before the scanned range that match the single search word exactly."""
        if len(self.query.words) > 1:
            return []
        found: set[str] = set()
        for column in self.language.exact:
            same = self.rows.filter(**{column: self.query.words[0], f"{self.newest}__lt": self.since})
            # SQLite uses the partial index only if the query repeats its condition.
            same = same.exclude(**{column: ""})
            found.update(same.values_list("pk", flat=True)[:MAX_OLDER])
        rows = self.rows.filter(self.query.condition(), pk__in=found)
        return self.ids(rows, self.order(Unordered(F(self.newest))), 0, MAX_OLDER) if found else []

    def bounded_page(self, start: int, size: int, places: PageEnds | None) -> SearchPage:
        if self.sorts:
            return self.sorted_page(start, size)
        if self.query.is_ordered:
            return self.read_page(self.matched, self.order(), start, size, places)
        total = self.count(start + size)
        if total > max(MAX_COUNTED, start + size):
            hidden = self.within_scan(self.query.condition(without_lead_index=True))
            return self.read_page(hidden, self.order(), start, size, places)
        ids = self.ids(self.matched, self.order(Unordered(F(self.newest))), start, size)
        return SearchPage(ids, total, since=self.since)

    def read_page(self, matched: QuerySet, order: list, start: int, size: int, places: PageEnds | None) -> SearchPage:
        """Return a page in index order. Reads only the rows of the page."""
        before = places.find(start) if places and start >= DEEP_PAGE_START else None
        if before:
            matched, skipped = matched.filter(self.after_position(before)), 0
        else:
            skipped = start
        columns = matched.order_by(*order).values_list(self.newest, "pk", self.hit_column)
        found = list(columns[skipped : skipped + size])
        page_end = PageEnd(start + len(found), *found[-1][:2]) if found and len(found) == size else None
        if places and page_end:
            places.remember(page_end)
        ids = [hit_column for *_, hit_column in found]
        if len(found) < size and (found or start == 0):
            return SearchPage(ids, start + len(found), since=self.since)
        total = self.count(start + size)
        is_exact = total <= max(MAX_COUNTED, start + size)
        return SearchPage(ids, total, is_exact, self.since, page_end)

    def sorted_page(self, start: int, size: int) -> SearchPage:
        column, descends = self.sorts[0]
        if self.query.lead is None and len(self.sorts) == 1 and column in self.language.sorts_by_index:
            return self.page_by_index(column, descends, start, size)
        total = self.count(start + size)
        is_exact = total <= max(MAX_COUNTED, start + size)
        matched = self.matched
        if not is_exact and not self.can_sort_all(matched):
            matched = matched.filter(**{f"{self.newest}__gte": self.since})
        order = [self.order_with_nulls(F(column), descends) for column, descends in self.sorts]
        return SearchPage(self.ids(matched, [*order, *self.order()], start, size), total, is_exact, self.since)

    def page_by_index(self, column: str, descends: bool, start: int, size: int) -> SearchPage:
        """Return a page of all rows in the order of another index: rows with a value first, then the others."""
        ties = reversed_order(self.order()) if descends else self.order()
        matched = self.matched.filter(**{f"{column}__isnull": False})
        ids = self.ids(matched, [OrderBy(F(column), descending=descends), *ties], start, size)
        if len(ids) < size:
            order = [self.order_with_nulls(F(column), descends), *self.order()]
            ids = self.ids(self.matched, order, start, size)
        total = self.count(start + size)
        return SearchPage(ids, total, total <= max(MAX_COUNTED, start + size), self.since)

    def can_sort_all(self, matched: QuerySet) -> bool:
        """Return True if there are few enough hits to sort. Otherwise move `since` so that there are."""
        last = self.nth_newest(matched, MAX_SORTED)
        self.since = last or self.since
        return last is None

    def find_scan_start(self) -> Any:
        """Return the creation time at which the scan begins, or None if it covers all rows."""
        scan_limit, query = self.query.scan_limit, self.query
        if scan_limit is None:
            return None
        led = self.rows.filter(query.lead_condition())
        if not query.is_ordered:
            if led.values("pk")[: scan_limit + 1].count() <= scan_limit:
                return None
            led = self.rows
        return self.nth_newest(led, scan_limit)

    def nth_newest(self, rows: QuerySet, number: int) -> Any:
        """Return the creation time of the nth newest row, counted from 0, or None if there are fewer rows."""
        order = OrderBy(F(self.newest), descending=True)
        return rows.order_by(order).values_list(self.newest, flat=True)[number : number + 1].first()

    def within_scan(self, condition: Q) -> QuerySet:
        matched = self.rows.filter(condition)
        return matched if self.since is None else matched.filter(**{f"{self.newest}__gte": self.since})

    def count(self, ends: int) -> int:
        """Count the hits, up to one beyond the end of the page. The result is cached."""
        most = max(MAX_COUNTED, ends) + 1
        if most not in self.counts:
            with disable_bulk_joins() if self.language.is_joined else nullcontext():
                self.counts[most] = self.matched.values("pk")[:most].count()
        return self.counts[most]

    def order(self, newest: Any = None) -> list[OrderBy]:
        """Return the order: newest first, unless the query asks for the oldest."""
        order = [OrderBy(newest or F(self.newest), descending=True)]
        if self.newest != "id":
            # A partial index is not sorted by id, and SQLite would prefer to read all rows in order of their ids.
            order.append(OrderBy(Unordered(F("id")) if self.query.is_rare(self.query.lead) else F("id")))
        return order if self.descends else reversed_order(order)

    def after_position(self, page_end: PageEnd) -> Q:
        """Return the condition for rows after the end of a page in this order."""
        moment, further = ("lt", "gt") if self.descends else ("gt", "lt")
        if self.newest == "id":
            return Q(**{f"id__{moment}": page_end.id})
        same = Q(**{self.newest: page_end.moment, f"id__{further}": page_end.id})
        return Q(**{f"{self.newest}__{moment}e": page_end.moment}) & (
            Q(**{f"{self.newest}__{moment}": page_end.moment}) | same
        )

    def ids(self, matched: QuerySet, order: list, start: int, size: int) -> list[str]:
        return list(matched.order_by(*order).values_list(self.hit_column, flat=True)[start : start + size])

    @staticmethod
    def order_with_nulls(column: F, descends: bool) -> OrderBy:
        """Order by a time column, with missing times as the earliest (api §6.2)."""
        return OrderBy(column, descending=descends, nulls_first=not descends or None, nulls_last=descends or None)


def reversed_order(order: list[OrderBy]) -> list[OrderBy]:
    return [OrderBy(each.expression, descending=not each.descending) for each in order]
