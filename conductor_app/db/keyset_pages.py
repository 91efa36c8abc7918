"""Keyset pagination: a page starts after the last row of the page before, without counting rows."""

from collections import namedtuple
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

SIZE = 50
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class SortColumn:
    """Sort order by an indexed column. Ids order rows with equal values."""

    column: str
    descends: bool = True

    def order(self, backwards: bool = False) -> tuple[str, str]:
        """Return the order, with the id last. `backwards`: return the reverse order."""
        down = self.descends != backwards
        return ("-" if down else "") + self.column, "-id" if backwards else "id"

    def beyond_position(self, position: str, backwards: bool) -> Q:
        """Return the condition for rows after a position, or before it if `backwards`. Ignore a malformed position."""
        moment, _, id = position.partition(".")
        if not moment.isdecimal() or len(moment) > 15:
            return Q()
        further = "lt" if self.descends != backwards else "gt"
        same = Q(**{self.column: int(moment), "id__lt" if backwards else "id__gt": id})
        return Q(**{f"{self.column}__{further}e": int(moment)}) & (
            Q(**{f"{self.column}__{further}": int(moment)}) | same
        )

    def position(self, row: Any) -> str:
        return f"{getattr(row, self.column)}.{row.pk}"


@dataclass(frozen=True, slots=True)
class SortById:
    """Sort order by id, newest first. Ids are ordered by time."""

    column: str = "id"

    def order(self, backwards: bool = False) -> tuple[str]:
        return ("id" if backwards else "-id",)

    def beyond_position(self, position: str, backwards: bool) -> Q:
        """Return the condition for rows after a row, or before it if `backwards`. The row itself need not exist."""
        return Q(**{"id__gt" if backwards else "id__lt": position})

    def position(self, row: Any) -> str:
        return row.pk


@dataclass(frozen=True, slots=True)
class KeysetPage:
    """A page of rows.

    `before`, `after`: positions of the adjacent pages, empty if there are none; `is_complete`: the page has all rows.
    """

    rows: list[Any]
    before: str
    after: str
    is_complete: bool = False


def keyset_page(
    rows: QuerySet[Any, Any], sort: SortColumn | SortById, after: str = "", before: str = "", size: int = SIZE
) -> KeysetPage:
    """Return the page after or before a position, or the first page if there is no position."""
    backwards = bool(before)
    position = before or after
    found = rows.filter(**{f"{sort.column}__isnull": False}) if sort.column == "ended_at" else rows
    if position:
        found = found.filter(sort.beyond_position(position, backwards))
    read = list(found.order_by(*sort.order(backwards))[: size + 1])
    page = read[:size][::-1] if backwards else read[:size]
    is_more = len(read) > size
    has_before, has_after = (is_more, True) if backwards else (bool(position), is_more)
    is_complete = not position and not is_more and found is rows
    if not page:
        return KeysetPage([], "", "", is_complete)
    first, last = sort.position(page[0]), sort.position(page[-1])
    return KeysetPage(page, first if has_before else "", last if has_after else "", is_complete)


def count_rows(rows: QuerySet[Any, Any], listed: KeysetPage | None = None) -> tuple[int, bool]:
    """Count rows up to MAX_COUNTED, and return whether there are more. `listed`: a page that may have all rows."""
    if listed is not None and listed.is_complete:
        found = len(listed.rows)
    else:
        found = rows.order_by().values("pk")[: MAX_COUNTED + 1].count()
    return min(found, MAX_COUNTED), found > MAX_COUNTED


def iterate_pages(rows: QuerySet[Any, Any], sort: SortColumn) -> Iterator[list[Any]]:
    """Yield all rows page by page, for exports: memory stays bounded and no transaction stays open."""
    position = ""
    while True:
        listed = keyset_page(rows, sort, position, size=1_000)
        if listed.rows:
            yield listed.rows
        if not listed.after:
            return
        position = listed.after


def row_type(name: str, columns: Iterable[str]) -> Any:
    """Return a named tuple class with these columns. It is untyped, because its columns are known at run time only."""
    return namedtuple(name, list(columns))
