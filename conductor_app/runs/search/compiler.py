"""Compilation of a search: the tree of conditions as one condition on rows, and the part whose index leads.

The part with the most selective index leads. The other indexes are hidden from SQLite, which has no statistics to
choose between them. If no index supports a condition, `scan_limit` bounds the rows that are scanned, newest first, so
that every search ends soon and reports when it did not scan everything.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from operator import and_

from django.db.models import F, Q

from .fields import (
    MATCH_ALL,
    MATCH_NONE,
    ChoiceField,
    InvalidSearchValue,
    RareTextField,
    SearchField,
    contains_words,
    without_masked_values,
)
from .free_text import SearchLanguage, parse_free_text
from .parser import And, Clause, Condition, Not, Or, parse_query, syntax_error

FREE_TEXT_SCAN_LIMIT = 5_000


class SearchQuery:
    """The conditions of one search: a query, free text, and `extra_clauses` from other parameters."""

    def __init__(
        self, language: SearchLanguage, query: str = "", free_text: str = "", extra_clauses: Iterable[Clause] = ()
    ) -> None:
        self.language, self.query = language, query
        in_text, self.words = parse_free_text(free_text, language)
        parts = [*extra_clauses, *parts_of(parse_query(query)), *parts_of(in_text)]
        self.parts: tuple[Condition, ...] = tuple(map(self.rewrite_for_index, parts))
        ranked = [(rank, at) for at, part in enumerate(self.parts) if (rank := self.rank(part)) is not None]
        self.lead = self.parts[min(ranked)[1]] if ranked else None

    @property
    def is_ordered(self) -> bool:
        """True if the leading index lists the rows newest first."""
        if self.lead is None:
            return True
        if not isinstance(self.lead, Clause) or self.lead.operator not in ("=", "IN") or len(self.lead.values) != 1:
            return False
        return self.language.field_of(self.lead)[1].is_ordered

    @property
    def scan_limit(self) -> int | None:
        """Return the number of rows that may be scanned. None means all rows that the leading index finds."""
        rest = [part for part in self.parts if part is not self.lead or self.is_rare(part)]
        scan_limits = [scan_limit for part in rest if (scan_limit := self.scan_limit_of(part)) is not None]
        return min([*scan_limits, *([FREE_TEXT_SCAN_LIMIT] if self.words else [])], default=None)

    def condition(self, without_lead_index: bool = False) -> Q:
        """Return the whole search as a condition on rows.

        Raises:
            Invalid: when a value does not fit its field.
        """
        conditions = [self.build_condition(part, without_lead_index or part is not self.lead) for part in self.parts]
        index_conditions = [
            self.resolve_field(part)[1].index_filter(part)
            for part in self.parts
            if isinstance(part, Clause) and self.is_covered(part)
        ]
        return reduce(and_, [*conditions, *index_conditions], self.free_text_condition())

    def lead_condition(self) -> Q:
        """Return the condition of the leading index, with the bounds on the ordering time column."""
        bounds = [
            self.build_condition(part, without_index=False) for part in self.parts if self.is_on_order_column(part)
        ]
        clauses = [part for part in self.parts if isinstance(part, Clause)]
        with self.locate_errors():
            bounds += [bound for part in clauses if (bound := self.resolve_field(part)[1].bounds(part)) is not None]
        lead_field = self.resolve_field(self.lead)[1] if isinstance(self.lead, Clause) else None
        if isinstance(self.lead, Clause) and isinstance(lead_field, RareTextField):
            bounds.append(lead_field.index_condition(self.lead))
        elif self.lead is not None:
            bounds.append(self.build_condition(self.lead, without_index=False))
        return reduce(and_, bounds, MATCH_ALL)

    def is_rare(self, part: Condition | None) -> bool:
        """Return True if the index of the part only lists candidates that must be checked."""
        return isinstance(part, Clause) and isinstance(self.resolve_field(part)[1], RareTextField)

    def free_text_condition(self) -> Q:
        found = MATCH_ALL
        for word in self.words:
            anywhere = MATCH_NONE
            for text in self.language.texts:
                anywhere |= Q(contains_words(F(text), word)) & without_masked_values(text)
            found &= anywhere
        return found

    def rewrite_for_index(self, part: Condition) -> Condition:
        """Return an equivalent condition that indexes support best."""
        match part:
            case Clause():
                with self.locate_errors():
                    return self.resolve_field(part)[1].rewrite_for_index(part)
            case Not(part=Clause(operator="=" | "IN") as clause):
                found = self.resolve_field(clause)[1]
                # All other choices of the field are known.
                with self.locate_errors():
                    return found.negate_clause(clause) if isinstance(found, ChoiceField) else part
            case Not():
                return part
        return replace(part, parts=tuple(map(self.rewrite_for_index, part.parts)))

    def rank(self, part: Condition) -> int | None:
        match part:
            case Clause():
                return self.resolve_field(part)[1].rank_of(part)
            case Not():
                return None
        ranks = [self.rank(each) for each in part.parts]
        known = [rank for rank in ranks if rank is not None]
        if isinstance(part, Or):
            return max(known) if len(known) == len(ranks) else None
        return min(known, default=None)

    def scan_limit_of(self, part: Condition) -> int | None:
        match part:
            case Clause():
                return (
                    None
                    if self.is_covered(part) or self.is_on_order_column(part)
                    else self.resolve_field(part)[1].scan_limit
                )
            case Not():
                return self.scan_limit_of(part.part)
        scan_limits = [scan_limit for each in part.parts if (scan_limit := self.scan_limit_of(each)) is not None]
        return min(scan_limits, default=None)

    def is_covered(self, part: Clause) -> bool:
        """Return True if the leading index includes the part."""
        leading = self.resolve_field(self.lead)[0] if isinstance(self.lead, Clause) else None if self.lead else ""
        return part is not self.lead and self.resolve_field(part)[1].is_covered_by(leading, part)

    def is_on_order_column(self, part: Condition) -> bool:
        """Return True if the part restricts the ordering time column."""
        return isinstance(part, Clause) and self.resolve_field(part)[1].is_order_column

    def build_condition(self, part: Condition, without_index: bool) -> Q:
        match part:
            case Clause():
                _, found = self.resolve_field(part)
                with self.locate_errors():
                    return found.condition(part, without_index and not self.is_on_order_column(part))
            case Not():
                return ~self.build_condition(part.part, without_index)
        conditions = [self.build_condition(each, without_index) for each in part.parts]
        return reduce(lambda one, other: one | other if isinstance(part, Or) else one & other, conditions)

    def resolve_field(self, clause: Clause) -> tuple[str, SearchField]:
        with self.locate_errors():
            return self.language.field_of(clause)

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Convert errors of fields into errors that show the position in the query.

        Raises:
            Invalid: when the body raises InvalidSearchValue.
        """
        try:
            yield
        except InvalidSearchValue as invalid:
            raise syntax_error(self.query, invalid.position, invalid.message) from None


def parts_of(condition: Condition | None) -> tuple[Condition, ...]:
    """Return the conditions that must all hold."""
    return condition.parts if isinstance(condition, And) else (condition,) if condition else ()
