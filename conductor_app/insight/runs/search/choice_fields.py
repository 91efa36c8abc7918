"""Search fields for choices, constants and lists of names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from .field_types import EVERYTHING, NOTHING, InvalidSearchValue, RareTextField, SearchField, check_pattern
from .query_parser import Clause, QueryValue
from .search_sql import column_expression, compare_any, compare_column, contains_words, matches_pattern


@dataclass(frozen=True)
class ChoiceField(SearchField):
    """A column with a fixed set of values, `choices`."""

    choices: tuple[str, ...] = ()

    def rewrite_for_index(self, clause: Clause) -> Clause:
        """Replace patterns by the choices that match them."""
        if clause.operator not in ("=", "IN", "STARTS_WITH"):
            return clause
        self.check_choices(clause)
        return Clause(
            clause.field,
            "IN",
            tuple(QueryValue(word, clause.position) for word in self.matching_choices(clause)),
            clause.position,
        )

    def rank_of(self, clause: Clause) -> int | None:
        return self.rank if clause.operator in ("=", "IN", "STARTS_WITH") else None

    def condition(self, clause: Clause, without_index: bool) -> Q:
        if clause.operator not in ("=", "IN", "STARTS_WITH"):
            return super().condition(clause, without_index)
        found = self.matching_choices(clause)
        return self.choices_condition(found, without_index) if found else NOTHING

    def matching_choices(self, clause: Clause) -> list[str]:
        """Return the choices that match the clause."""
        more = "*" if clause.operator == "STARTS_WITH" else ""
        return [word for word in self.choices if any(matches_word(word, value.text + more) for value in clause.values)]

    def negate_clause(self, clause: Clause) -> Clause:
        """Return the clause that selects all other choices, which an index supports too."""
        self.check_choices(clause)
        others = [word for word in self.choices if not any(matches_word(word, value.text) for value in clause.values)]
        return Clause(clause.field, "IN", tuple(QueryValue(word, clause.position) for word in others), clause.position)

    def check_choices(self, clause: Clause) -> None:
        """Check that the clause names at least one choice: a list may contain statuses of workflows and of tasks.

        Raises:
            InvalidSearchValue: when no value is a choice, a pattern or empty.
        """
        texts = [value.text.strip().upper() for value in clause.values]
        if clause.operator != "STARTS_WITH" and not any(not t or "*" in t or t in self.choices for t in texts):
            found = ", ".join(texts)[:50]
            raise InvalidSearchValue(
                clause.values[0].position, f"{clause.field} is never {found}; use one of: {', '.join(self.choices)}"
            )

    def choices_condition(self, found: list[str], without_index: bool) -> Q:
        return Q(compare_any(column_expression(self.column, without_index), found))


def matches_word(word: str, pattern: str) -> bool:
    """Return True if a choice equals the pattern or matches its `*`, ignoring case."""
    pieces = pattern.strip().upper().split("*")
    if len(pieces) == 1:
        return word == pieces[0]
    first, *middle, last = pieces
    at = len(first)
    for piece in middle:
        at = word.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return word.startswith(first) and word.endswith(last) and at <= len(word) - len(last)


@dataclass(frozen=True)
class ConstantField(SearchField):
    """A field with the same value for all rows."""

    constant: str = ""

    def rank_of(self, clause: Clause) -> int | None:
        return None

    def condition(self, clause: Clause, without_index: bool) -> Q:
        is_true = clause.operator in ("=", "IN") and any(
            matches_word(self.constant.upper(), v.text) for v in clause.values
        )
        return EVERYTHING if is_true else NOTHING


@dataclass(frozen=True)
class NameListField(RareTextField):
    """A JSON list of names, such as the failed references."""

    def index_condition(self, clause: Clause) -> Q:
        return ~Q(**{self.column: []})

    def null_condition(self, left: Any) -> Q:
        return Q(compare_column(left, "=", "[]"))

    def condition(self, clause: Clause, without_index: bool) -> Q:
        """Build the condition on a list of names.

        Raises:
            InvalidSearchValue: when the operator is not =, !=, IN or IS NULL.
        """
        if clause.operator not in ("=", "IN", "NULL"):
            raise InvalidSearchValue(clause.position, f"{clause.field} supports only =, !=, IN and IS NULL")
        return super().condition(clause, without_index)

    def equals_any(self, left: Any, values: Sequence[QueryValue]) -> Q:
        found = NOTHING
        for value in values:
            text = check_pattern(value, value.text)
            found |= Q(matches_pattern(left, f"*{text}*") if "*" in text else contains_words(left, f'"{text}"'))
        return found
