"""Fields that are one of a few words, always the same word, or names out of a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from .fields import EVERYTHING, NOTHING, InvalidSearchValue, RareTextField, SearchField, check_pattern
from .grammar import Clause, QueryValue
from .sql import column_expression, compare_any, compare_column, contains_words, matches_pattern


@dataclass(frozen=True)
class ChoiceField(SearchField):
    """One of a few words; `choices` are all of them."""

    choices: tuple[str, ...] = ()

    def rewrite_for_index(self, clause: Clause) -> Clause:
        """The words themselves, in place of a pattern."""
        if clause.operator not in ("=", "IN", "STARTS_WITH"):
            return clause
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
        """The words that are asked for."""
        more = "*" if clause.operator == "STARTS_WITH" else ""
        return [word for word in self.choices if any(matches_word(word, value.text + more) for value in clause.values)]

    def negate_clause(self, clause: Clause) -> Clause:
        """The comparison that finds all other words: an index answers it too."""
        others = [word for word in self.choices if not any(matches_word(word, value.text) for value in clause.values)]
        return Clause(clause.field, "IN", tuple(QueryValue(word, clause.position) for word in others), clause.position)

    def choices_condition(self, found: list[str], without_index: bool) -> Q:
        return Q(compare_any(column_expression(self.column, without_index), found))


def matches_word(word: str, pattern: str) -> bool:
    """Whether a word is this one, or matches the stars in it; small and capital letters alike."""
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
    """A field that says the same of everything here."""

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
    """Names out of a list kept as JSON, such as the references that failed."""

    def index_condition(self, clause: Clause) -> Q:
        return ~Q(**{self.column: []})

    def null_condition(self, left: Any) -> Q:
        return Q(compare_column(left, "=", "[]"))

    def condition(self, clause: Clause, without_index: bool) -> Q:
        if clause.operator not in ("=", "IN", "NULL"):
            raise InvalidSearchValue(clause.position, f"{clause.field} can be compared with =, !=, IN and IS NULL only")
        return super().condition(clause, without_index)

    def equals_any(self, left: Any, values: Sequence[QueryValue]) -> Q:
        found = NOTHING
        for value in values:
            text = check_pattern(value, value.text)
            found |= Q(matches_pattern(left, f"*{text}*") if "*" in text else contains_words(left, f'"{text}"'))
        return found
