"""Pages of search results: ids in order, the total, and the columns that a list shows.

The total is exact up to 10,000. Above that, it is a lower bound that always exceeds the end of the requested page while
there are more hits, so that a client that continues while `start < totalHits` sees everything.

A client that reads a long result page by page continues where a page ended, instead of skipping all rows before. Each
process remembers the ends for a minute. A client that returns its `queryId` does not depend on that.
"""

import base64
import binascii
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import orjson
from django.db.models import Case, CharField, F, OrderBy, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast, Concat, Substr

from ...db.fields import dumps
from ...db.keyset_pages import row_type
from ...utils import clock, process_state
from ...utils.process_state import Slot
from ..models import Attempt, Run
from .compiler import SearchQuery
from .fields import Unordered, disable_bulk_joins

MAX_REMEMBERED, REMEMBER_MS = 2_000, 60_000


@dataclass(frozen=True, slots=True)
class PageEnd:
    """End of a page: number of rows up to its last row, creation time and id of that row."""

    start: int
    moment: Any
    id: str


class PageEnds:
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


MAX_SHOWN_LENGTH, MAX_SHOWN = 10_000, 10_000_000
"""Maximum characters of one payload, and of all payloads of a page."""

RUN_COLUMNS = (
    "id", "name", "version", "status", "reason", "correlation_id", "priority", "created_at", "updated_at", "ended_at",
    "parent_id", "failed_refs", "failed_names", "domains", "started_by", "event", "idempotency_key", "input_size",
    "output_size", "input_path", "output_path",
)  # fmt: skip
ATTEMPT_COLUMNS = (
    "id", "run_id", "name", "status", "reason", "domain", "scheduled_at", "started_at", "updated_at", "ended_at",
    "callback_ms", "number", "worker", "run__name", "run__correlation_id", "run__priority", "task__type",
    "task__status", "task__attempt_id", "input_size", "output_size", "input_path", "output_path",
)  # fmt: skip
if TYPE_CHECKING:
    RunLine = Any
    AttemptLine = Any
else:
    RunLine = row_type("RunLine", [*RUN_COLUMNS, "input", "output"])
    AttemptLine = row_type("AttemptLine", [*(name.replace("__", "_") for name in ATTEMPT_COLUMNS), "input", "output"])


def run_lines(ids: Sequence[str]) -> list[RunLine]:
    """Return the runs with these ids, in their order."""
    return _load_lines(Run.objects.all(), RUN_COLUMNS, RunLine, ids)


def attempt_lines(ids: Sequence[str]) -> list[AttemptLine]:
    """Return the attempts with these ids, in their order."""
    return _load_lines(Attempt.objects.all(), ATTEMPT_COLUMNS, AttemptLine, ids)


def _load_lines(rows: QuerySet, columns: Sequence[str], kind: Any, ids: Sequence[str]) -> list[Any]:
    if not ids:
        return []
    most = min(MAX_SHOWN_LENGTH, MAX_SHOWN // len(ids))
    excerpts = {f"{name}_shown": _payload_excerpt(name, most) for name in ("input", "output")}
    found = rows.filter(pk__in=list(ids)).annotate(**excerpts).values_list(*columns, *excerpts)
    by_id = {values[0]: kind._make(values) for values in found}
    return [by_id[id] for id in ids if id in by_id]


def _payload_excerpt(name: str, most: int) -> Case:
    """Return the text of a payload. Of a long one, return only the beginning, which is not valid JSON."""
    text = Cast(F(name), TextField())
    beginning = Concat(Value("…"), Substr(text, 1, most), output_field=CharField())
    return Case(When(**{f"{name}_size__lte": most}, then=text), default=beginning, output_field=TextField())


MAX_COUNTED = 10_000
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


def query_for_value(value: str) -> str:
    """Return a query for runs whose input contains a value at any path. Inputs are stored as JSON."""
    escaped = (dumps(value) or "")[1:-1].replace("\\", "\\\\").replace('"', '\\"')
    return f'input = "*{escaped}*"'
