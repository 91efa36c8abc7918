"""Long lists in pages of their own: by where a page ends, never by how many rows lie before it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

SIZE = 50
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column with an index, and whether its largest values come first; ids settle what is equal."""

    column: str
    descends: bool = True

    def order(self, backwards: bool = False) -> tuple[str, str]:
        """The order, which ends in the id; the other way round for who goes back."""
        down = self.descends != backwards
        return ("-" if down else "") + self.column, "-id" if backwards else "id"

    def beyond_position(self, position: str, backwards: bool) -> Q:
        """What comes behind a place, or before it; a place that cannot be read is none."""
        moment, _, id = position.partition(".")
        if not moment.isdecimal() or len(moment) > 15:
            return Q()
        further = "lt" if self.descends != backwards else "gt"
        same = Q(**{self.column: int(moment), "id__lt" if backwards else "id__gt": id})
        return Q(**{f"{self.column}__{further}e": int(moment)}) & (
            Q(**{f"{self.column}__{further}": int(moment)}) | same
        )

    def position(self, row: Any) -> str:
        """Where a row stands."""
        return f"{getattr(row, self.column)}.{row.pk}"


@dataclass(frozen=True, slots=True)
class SortById:
    """Ids, which are time-ordered: the newest first."""

    column: str = "id"

    def order(self, backwards: bool = False) -> tuple[str]:
        return ("id" if backwards else "-id",)

    def beyond_position(self, position: str, backwards: bool) -> Q:
        """What comes behind a row, or before it; the row itself need not be there any more."""
        return Q(**{"id__gt" if backwards else "id__lt": position})

    def position(self, row: Any) -> str:
        return row.pk


@dataclass(frozen=True, slots=True)
class KeysetPage:
    """A page of rows; `before` and `after` are the places from which the neighbouring pages go on, if there are any.

    `is_complete`: these are all rows.
    """

    rows: list[Any]
    before: str
    after: str
    is_complete: bool = False


def keyset_page(
    rows: QuerySet, sort: SortColumn | SortById, after: str = "", before: str = "", size: int = SIZE
) -> KeysetPage:
    """The page behind a place, or the one before it; the first one where no place is named."""
    backwards = bool(before)
    position = before or after
    found = rows.filter(**{f"{sort.column}__isnull": False}) if sort.column == "ended_at" else rows
    if position:
        found = found.filter(sort.beyond_position(position, backwards))
    read = list(found.order_by(*sort.order(backwards))[: size + 1])
    shown = read[:size][::-1] if backwards else read[:size]
    is_more = len(read) > size
    has_before, has_after = (is_more, True) if backwards else (bool(position), is_more)
    is_complete = not position and not is_more and found is rows
    if not shown:
        return KeysetPage([], "", "", is_complete)
    first, last = sort.position(shown[0]), sort.position(shown[-1])
    return KeysetPage(shown, first if has_before else "", last if has_after else "", is_complete)


def count_rows(rows: QuerySet, listed: KeysetPage | None = None) -> tuple[int, bool]:
    """How many rows there are, counted up to a bound; and whether there are more. A page of all of them says it."""
    is_known = listed is not None and listed.is_complete
    found = len(listed.rows) if is_known else rows.order_by().values("pk")[: MOST_COUNTED + 1].count()
    return min(found, MOST_COUNTED), found > MOST_COUNTED


def iterate_pages(rows: QuerySet, sort: SortColumn, size: int = 1_000) -> Iterator[list[Any]]:
    """All rows, a page at a time: for exports, which hold neither memory nor a transaction."""
    position = ""
    while True:
        listed = keyset_page(rows, sort, position, size=size)
        if listed.rows:
            yield listed.rows
        if not listed.after:
            return
        position = listed.after
