"""Pages of what a search found: ids in order, and how many there are.

The total is exact up to 10,000. Beyond, it is a lower bound that is always ahead of the page asked for as long as there
is more, so a client that goes on while `start < totalHits` sees everything.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F, OrderBy, Q, QuerySet

from .places import PageEnd, PageEnds
from .search_query import SearchQuery
from .sql import Unordered, row_by_row

COUNTED = 10_000
"""Hits that are counted."""
SORTED = 50_000
"""Hits that are sorted by a field that has no index; the newest ones."""
MOST_OLDER = 100
"""Rows that are found by a whole word of free text, beyond those that were looked through."""
DEEP = 1_000
"""From here on a page is found by where the one before it ended, if that is remembered."""

Sort = tuple[str, bool]
"""A column, and whether it descends."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Ids in order. `is_exact`: whether `total` is. `since`: rows that began earlier were not looked at."""

    ids: list[str]
    total: int
    is_exact: bool = True
    since: Any = None
    place: PageEnd | None = None


class Search:
    """One question put to the rows of one table."""

    def __init__(
        self, rows: QuerySet, question: SearchQuery, sorts: list[Sort] | None = None, shown: str = "pk"
    ) -> None:
        """`shown`: the column of the hits that pages are made of."""
        self.question, self.language, self.shown = question, question.language, shown
        self.newest = self.language.newest
        self.sorts = sorts or []
        self.descends = True
        if len(self.sorts) == 1 and self.sorts[0][0] == self.newest:
            [(_, self.descends)], self.sorts = self.sorts, []
        self.rows = rows.order_by()
        self.since = self.bound()
        self.matched = self.bounded(question.condition())
        self.counted: dict[int, int] = {}

    def hits(self) -> QuerySet:
        """All hits in the order in which they are shown, for who cuts pages of them."""
        matched = self.matched
        if not self.question.is_ordered and self.count(0) > COUNTED:
            matched = self.bounded(self.question.condition(hides_lead=True))
        return matched.order_by(*self.order())

    def page(self, start: int, size: int, places: PageEnds | None = None) -> SearchPage:
        """The hits from `start` on. What free text names in full follows the hits within the bound: it is older."""
        page = self.bounded_page(start, size, places)
        if self.since is None or not self.question.words or not page.is_exact:
            return page
        older = self.older()
        more = older[max(start - page.total, 0) : max(start + size - page.total, 0)]
        return replace(page, ids=[*page.ids, *more], total=page.total + len(older))

    def older(self) -> list[str]:
        """Rows before the bound that bear exactly the one word that is looked for."""
        if len(self.question.words) > 1:
            return []
        found: set[str] = set()
        for column in self.language.exact:
            same = self.rows.filter(**{column: self.question.words[0], f"{self.newest}__lt": self.since})
            # The words of the index's own condition, without which SQLite does not take it.
            same = same.exclude(**{column: ""})
            found.update(same.values_list("pk", flat=True)[:MOST_OLDER])
        rows = self.rows.filter(self.question.condition(), pk__in=found)
        return self.ids(rows, self.order(Unordered(F(self.newest))), 0, MOST_OLDER) if found else []

    def bounded_page(self, start: int, size: int, places: PageEnds | None) -> SearchPage:
        if self.sorts:
            return self.sorted_page(start, size)
        if self.question.is_ordered:
            return self.read(self.matched, self.order(), start, size, places)
        total = self.count(start + size)
        if total > max(COUNTED, start + size):
            hidden = self.bounded(self.question.condition(hides_lead=True))
            return self.read(hidden, self.order(), start, size, places)
        ids = self.ids(self.matched, self.order(Unordered(F(self.newest))), start, size)
        return SearchPage(ids, total, since=self.since)

    def read(self, matched: QuerySet, order: list, start: int, size: int, places: PageEnds | None) -> SearchPage:
        """A page in the order of an index: as many rows are read as are shown."""
        before = places.find(start) if places and start >= DEEP else None
        if before:
            matched, skipped = matched.filter(self.after(before)), 0
        else:
            skipped = start
        columns = matched.order_by(*order).values_list(self.newest, "pk", self.shown)
        found = list(columns[skipped : skipped + size])
        place = PageEnd(start + len(found), *found[-1][:2]) if found and len(found) == size else None
        if places and place:
            places.remember(place)
        ids = [shown for *_, shown in found]
        if len(found) < size and (found or start == 0):
            return SearchPage(ids, start + len(found), since=self.since)
        total = self.count(start + size)
        is_exact = total <= max(COUNTED, start + size)
        return SearchPage(ids, total, is_exact, self.since, place)

    def sorted_page(self, start: int, size: int) -> SearchPage:
        column, descends = self.sorts[0]
        if self.question.lead is None and len(self.sorts) == 1 and column in self.language.sorts_by_index:
            return self.page_by_index(column, descends, start, size)
        total = self.count(start + size)
        is_exact = total <= max(COUNTED, start + size)
        matched = self.matched
        if not is_exact and not self.is_small(matched):
            matched = matched.filter(**{f"{self.newest}__gte": self.since})
        order = [self.ordered(F(column), descends) for column, descends in self.sorts]
        return SearchPage(self.ids(matched, [*order, *self.order()], start, size), total, is_exact, self.since)

    def page_by_index(self, column: str, descends: bool, start: int, size: int) -> SearchPage:
        """All rows in the order of another index: those that have a value there, then the others."""
        ties = reversed_order(self.order()) if descends else self.order()
        matched = self.matched.filter(**{f"{column}__isnull": False})
        ids = self.ids(matched, [OrderBy(F(column), descending=descends), *ties], start, size)
        if len(ids) < size:
            order = [self.ordered(F(column), descends), *self.order()]
            ids = self.ids(self.matched, order, start, size)
        total = self.count(start + size)
        return SearchPage(ids, total, total <= max(COUNTED, start + size), self.since)

    def is_small(self, matched: QuerySet) -> bool:
        """Whether there are few enough hits to sort; if not, `since` says from where on they are."""
        last = self.nth_newest(matched, SORTED)
        self.since = last or self.since
        return last is None

    def bound(self) -> Any:
        """Where looking begins, if not all can be looked at."""
        reach, question = self.question.reach, self.question
        if reach is None:
            return None
        led = self.rows.filter(question.lead_condition())
        if not question.is_ordered:
            if led.values("pk")[: reach + 1].count() <= reach:
                return None
            led = self.rows
        return self.nth_newest(led, reach)

    def nth_newest(self, rows: QuerySet, number: int) -> Any:
        """Where the row of this number began, the newest being number 0; None if there are fewer."""
        order = OrderBy(F(self.newest), descending=True)
        return rows.order_by(order).values_list(self.newest, flat=True)[number : number + 1].first()

    def bounded(self, condition: Q) -> QuerySet:
        matched = self.rows.filter(condition)
        return matched if self.since is None else matched.filter(**{f"{self.newest}__gte": self.since})

    def count(self, ends: int) -> int:
        """How many there are, counted a little beyond the end of the page; each such end once."""
        most = max(COUNTED, ends) + 1
        if most not in self.counted:
            with row_by_row() if self.language.is_joined else nullcontext():
                self.counted[most] = self.matched.values("pk")[:most].count()
        return self.counted[most]

    def order(self, newest: Any = None) -> list[OrderBy]:
        """The newest first, unless the oldest are asked for."""
        order = [OrderBy(newest or F(self.newest), descending=True)]
        if self.newest != "id":
            # An index of few rows does not list them by their ids too: SQLite would rather read all rows in order.
            order.append(OrderBy(Unordered(F("id")) if self.question.is_rare(self.question.lead) else F("id")))
        return order if self.descends else reversed_order(order)

    def after(self, place: PageEnd) -> Q:
        """What comes behind a place in this order."""
        moment, further = ("lt", "gt") if self.descends else ("gt", "lt")
        if self.newest == "id":
            return Q(**{f"id__{moment}": place.id})
        same = Q(**{self.newest: place.moment, f"id__{further}": place.id})
        return Q(**{f"{self.newest}__{moment}e": place.moment}) & (
            Q(**{f"{self.newest}__{moment}": place.moment}) | same
        )

    def ids(self, matched: QuerySet, order: list, start: int, size: int) -> list[str]:
        return list(matched.order_by(*order).values_list(self.shown, flat=True)[start : start + size])

    @staticmethod
    def ordered(column: F, descends: bool) -> OrderBy:
        """What has no moment yet sorts as the earliest (api §6.2)."""
        return OrderBy(column, descending=descends, nulls_first=not descends or None, nulls_last=descends or None)


def reversed_order(order: list[OrderBy]) -> list[OrderBy]:
    return [OrderBy(each.expression, descending=not each.descending) for each in order]
