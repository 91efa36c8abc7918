"""The kinds of fields that a search knows: how each turns a comparison into a condition on rows.

A field says how well an index narrows it down (`rank`): 0 finds a handful of rows, higher ones more; None is a field
whose rows have to be looked at one by one, so a search by it alone is bounded (`pages.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from ...core.errors import Invalid
from .grammar import Clause, QueryValue
from .sql import LONGEST_PATTERN, MOST_STARS, column_expression, compare_any, compare_column, matches_pattern

EVERYTHING, NOTHING = ~Q(pk__in=[]), Q(pk__in=[])
COLUMN_SCAN_LIMIT, RARE_SCAN_LIMIT = 200_000, 50_000


class InvalidSearchValue(Invalid):
    """A value that its field cannot be compared with."""

    def __init__(self, position: int, complaint: str) -> None:
        super().__init__(complaint)
        self.position = position


@dataclass(frozen=True)
class SearchField:
    """Texts of one column. Without an index for `!=`, `<` and patterns, only = and IN are quick."""

    column: str
    rank: int | None = None
    has_partial_index: bool = False
    """Whether its index holds only rows where it is not empty."""
    covered_by: frozenset[str] = frozenset()
    """Fields whose index tells this one too; an empty name is the order of all rows."""
    scan_limit: int = COLUMN_SCAN_LIMIT
    """How many rows are looked at for it where no index tells it."""
    is_ordered: bool = True
    """Whether its index lists the rows of one value in the order in which they began."""
    is_order_column: bool = False
    """Whether it is the moment by which rows are ordered."""
    is_nullable: bool = False

    def is_covered_by(self, leading: str, clause: Clause) -> bool:
        """Whether the index of the field that leads tells this comparison too."""
        return leading in self.covered_by

    def index_filter(self, clause: Clause) -> Q:
        """What that index lists, where it does not list all rows."""
        return EVERYTHING

    def bounds(self, clause: Clause) -> Q | None:
        """What it says of the moment by which rows are ordered, if anything."""
        return None

    def rewrite_for_index(self, clause: Clause) -> Clause:
        """The same asked in a way that an index answers, where something can be looked up first."""
        return clause

    def rank_of(self, clause: Clause) -> int | None:
        """How well an index answers this comparison."""
        is_selective = clause.operator in ("=", "IN") and all(self.is_selective(value.text) for value in clause.values)
        return self.rank if is_selective else None

    def is_selective(self, text: str) -> bool:
        return "*" not in text and not (self.has_partial_index and not text)

    def condition(self, clause: Clause, without_index: bool) -> Q:
        """The condition on rows; `without_index`: another field leads."""
        if clause.operator == "NULL":
            return (
                Q(**{f"{self.column}__isnull": True})
                if self.is_nullable
                else self.null_condition(column_expression(self.column, without_index))
            )
        found = self.comparison(clause, column_expression(self.column, without_index)) & (
            self.bounds(clause) or EVERYTHING
        )
        # Said, because the opposite of an unknown truth is unknown too: `!=` finds what has no value.
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
            # The words of the index's own condition, without which SQLite does not take it.
            found &= ~Q(**{self.column: ""})
        return found

    def null_condition(self, left: Any) -> Q:
        return Q(compare_column(left, "=", ""))

    def value(self, value: QueryValue) -> Any:
        return value.text


@dataclass(frozen=True)
class IdSearchField(SearchField):
    """Ids: STARTS_WITH and `abc*` are ranges of the index."""

    is_ordered: bool = False

    def rank_of(self, clause: Clause) -> int | None:
        if clause.operator == "STARTS_WITH" or (clause.operator == "=" and is_prefix_pattern(clause.values[0].text)):
            return self.rank
        return super().rank_of(clause)

    def condition(self, clause: Clause, without_index: bool) -> Q:
        text = clause.values[0].text if clause.values else ""
        if clause.operator == "STARTS_WITH" or (clause.operator == "=" and is_prefix_pattern(text)):
            start = text.rstrip("*")
            # The range is what an index reads; collations disagree on more than it.
            return Q(**{f"{self.column}__gte": start, f"{self.column}__lte": start + LAST}) & Q(
                **{f"{self.column}__startswith": start}
            )
        return super().condition(clause, without_index)


LAST = "z" * 8
"""Sorts behind every character of an id, in the collations of both databases."""


def is_prefix_pattern(text: str) -> bool:
    return len(text) > 1 and text.endswith("*") and "*" not in text[:-1]


@dataclass(frozen=True)
class RareTextField(SearchField):
    """Texts that few rows have, too long for an index: it lists only the rows that have one."""

    scan_limit: int = RARE_SCAN_LIMIT

    def rank_of(self, clause: Clause) -> int | None:
        is_there = clause.operator in ("=", "IN", "STARTS_WITH") and all(value.text for value in clause.values)
        return self.rank if is_there else None

    def index_condition(self, clause: Clause) -> Q:
        """What the index lists."""
        return ~Q(**{self.column: ""})

    def comparison(self, clause: Clause, left: Any) -> Q:
        found = super().comparison(clause, left)
        return found & self.index_condition(clause) if self.rank_of(clause) is not None else found


def check_pattern(value: QueryValue, pattern: str) -> str:
    """The pattern, if it is not too long or wild for a database."""
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidSearchValue(
            value.position, f"a value with a pattern may have at most {LONGEST_PATTERN} characters"
        )
    if pattern.count("*") > MOST_STARS:
        raise InvalidSearchValue(value.position, f"a pattern may have at most {MOST_STARS} stars")
    return pattern
