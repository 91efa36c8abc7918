"""Field types of the search: each turns a comparison into a condition on rows.

`rank` states how selective the index of a field is: 0 finds a few rows, higher ranks find more. None means that no
index helps, so that a search by this field alone scans a bounded number of rows (`pages.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from ....core.errors import Invalid
from .query_parser import Clause, QueryValue
from .search_sql import MAX_PATTERN_LENGTH, MAX_STARS, column_expression, compare_any, compare_column, matches_pattern

EVERYTHING, NOTHING = ~Q(pk__in=[]), Q(pk__in=[])
COLUMN_SCAN_LIMIT, RARE_SCAN_LIMIT = 200_000, 50_000


class InvalidSearchValue(Invalid):
    """A value or a comparison that the field does not support."""

    def __init__(self, position: int, validation_error: str) -> None:
        super().__init__(validation_error)
        self.position = position


@dataclass(frozen=True)
class SearchField:
    """A text column. The index supports only `=` and IN, not `!=`, `<` and patterns."""

    column: str
    rank: int | None = None
    has_partial_index: bool = False
    """True if the index contains only rows with a non-empty value."""
    covered_by: frozenset[str] = frozenset()
    """Fields whose index includes this column. An empty name stands for the index that orders all rows."""
    scan_limit: int = COLUMN_SCAN_LIMIT
    """Rows that a search scans if no index includes this column."""
    is_ordered: bool = True
    """True if the index lists the rows of one value in the order of their creation."""
    is_order_column: bool = False
    """True if this is the time column by which rows are ordered."""
    is_nullable: bool = False

    def is_covered_by(self, leading: str, clause: Clause) -> bool:
        """Return True if the index of the leading field includes this comparison."""
        return leading in self.covered_by

    def index_filter(self, clause: Clause) -> Q:
        """Return the condition of the leading index if it is partial."""
        return EVERYTHING

    def bounds(self, clause: Clause) -> Q | None:
        """Return the condition on the ordering time column that follows from this clause, if any."""
        return None

    def rewrite_for_index(self, clause: Clause) -> Clause:
        """Return an equivalent clause that an index supports, where a lookup makes that possible."""
        return clause

    def rank_of(self, clause: Clause) -> int | None:
        """Return the rank of the index for this clause, or None if it does not support it."""
        is_selective = clause.operator in ("=", "IN") and all(self.is_selective(value.text) for value in clause.values)
        return self.rank if is_selective else None

    def is_selective(self, text: str) -> bool:
        return "*" not in text and not (self.has_partial_index and not text)

    def condition(self, clause: Clause, without_index: bool) -> Q:
        """Return the condition on rows. `without_index`: True if another field leads."""
        if clause.operator == "NULL":
            return (
                Q(**{f"{self.column}__isnull": True})
                if self.is_nullable
                else self.null_condition(column_expression(self.column, without_index))
            )
        found = self.comparison(clause, column_expression(self.column, without_index)) & (
            self.bounds(clause) or EVERYTHING
        )
        # Explicit, because NOT of an unknown result is unknown too: `!=` must find rows without a value.
        return found & Q(**{f"{self.column}__isnull": False}) if self.is_nullable else found

    def comparison(self, clause: Clause, left: Any) -> Q:
        values = clause.values
        match clause.operator:
            case "=" | "IN":
                return self.equals_any(left, values)
            case "BETWEEN":
                lower, upper = map(self.value, values)
                return Q(compare_column(left, ">=", lower)) & Q(compare_column(left, "<=", upper))
            case "STARTS_WITH":
                return Q(matches_pattern(left, check_pattern(values[0], values[0].text.replace("*", "") + "*")))
            case _:
                return Q(compare_column(left, clause.operator, self.value(values[0])))

    def equals_any(self, left: Any, values: Sequence[QueryValue]) -> Q:
        exact = [self.value(value) for value in values if "*" not in value.text]
        found = Q(compare_any(left, exact)) if exact else NOTHING
        for value in values:
            if "*" in value.text:
                found |= Q(matches_pattern(left, check_pattern(value, value.text)))
        if self.has_partial_index and exact and all(exact):
            # SQLite uses the partial index only if the query repeats its condition.
            found &= ~Q(**{self.column: ""})
        return found

    def null_condition(self, left: Any) -> Q:
        return Q(compare_column(left, "=", ""))

    def value(self, value: QueryValue) -> Any:
        return value.text


@dataclass(frozen=True)
class IdSearchField(SearchField):
    """An id column. STARTS_WITH and `abc*` are ranges of the index."""

    is_ordered: bool = False

    def rank_of(self, clause: Clause) -> int | None:
        if clause.operator == "STARTS_WITH" or (clause.operator == "=" and is_prefix_pattern(clause.values[0].text)):
            return self.rank
        return super().rank_of(clause)

    def condition(self, clause: Clause, without_index: bool) -> Q:
        text = clause.values[0].text if clause.values else ""
        if clause.operator == "STARTS_WITH" or (clause.operator == "=" and is_prefix_pattern(text)):
            start = text.rstrip("*")
            # The index reads the range. The exact prefix is checked too, because collations order differently.
            return Q(**{f"{self.column}__gte": start, f"{self.column}__lte": start + LAST}) & Q(
                **{f"{self.column}__startswith": start}
            )
        return super().condition(clause, without_index)


LAST = "z" * 8
"""Sorts after every character of an id, in the collations of both databases."""


def is_prefix_pattern(text: str) -> bool:
    return len(text) > 1 and text.endswith("*") and "*" not in text[:-1]


@dataclass(frozen=True)
class RareTextField(SearchField):
    """A text that few rows have and that is too long to index. A partial index lists the rows that have one."""

    scan_limit: int = RARE_SCAN_LIMIT

    def rank_of(self, clause: Clause) -> int | None:
        has_text = clause.operator in ("=", "IN", "STARTS_WITH") and all(value.text for value in clause.values)
        return self.rank if has_text else None

    def index_condition(self, clause: Clause) -> Q:
        """Return the condition of the partial index."""
        return ~Q(**{self.column: ""})

    def comparison(self, clause: Clause, left: Any) -> Q:
        found = super().comparison(clause, left)
        return found & self.index_condition(clause) if self.rank_of(clause) is not None else found


def check_pattern(value: QueryValue, pattern: str) -> str:
    """Return the pattern if it is within the limits.

    Raises:
        InvalidSearchValue: when the pattern is too long or has too many wildcards.
    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise InvalidSearchValue(value.position, f"a pattern may have at most {MAX_PATTERN_LENGTH} characters")
    if pattern.count("*") > MAX_STARS:
        raise InvalidSearchValue(value.position, f"a pattern may have at most {MAX_STARS} wildcards (*)")
    return pattern
