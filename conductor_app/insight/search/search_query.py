"""What a search asks for: the tree of conditions as one condition on rows, and which part of it an index answers best.

Each database is led to one good plan. The part that an index narrows down most leads; SQLite, which does not count,
does not see the others' indexes. Where no index serves a condition, `scan_limit` says how many rows may be looked
at for it, the newest first: so every search ends soon, and says so where it did not look at everything.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_

from django.db.models import F, Q

from ...core.errors import Invalid
from .fields import EVERYTHING, NOTHING, InvalidSearchValue, RareTextField, SearchField
from .grammar import CLAUSE_AHEAD, All, Any, Clause, Condition, Not, parse_query, syntax_error
from .payloads import DocumentSearchField
from .sql import contains_words
from .words import ChoiceField

MOST_WORDS = 10
FREE_TEXT_SCAN_LIMIT = 5_000
"""Rows whose texts are looked through for words anywhere in them."""


@dataclass(frozen=True)
class SearchLanguage:
    """What can be asked about one kind of thing. `newest`: the column by which the newest come first."""

    plural_name: str
    fields: Mapping[str, SearchField]
    newest: str
    texts: tuple[str, ...]
    """The columns in which free text is looked for."""
    exact: tuple[str, ...]
    """Those of them in which an index finds a whole word, however old its row is."""
    sorts: Mapping[str, str]
    sorts_by_index: frozenset[str]
    is_joined: bool = False
    """Whether fields of other tables are asked for."""
    names_by_lowercase: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names_by_lowercase", {name.lower(): name for name in self.fields})

    def field_of(self, clause: Clause) -> tuple[str, SearchField]:
        """The field that a clause speaks of; raises Misread."""
        base = base_of(clause.field)
        name = self.names_by_lowercase.get(base.lower())
        if name is None:
            known = ", ".join(sorted(self.fields))
            raise InvalidSearchValue(
                clause.position, f"there is no field '{base[:50]}' of {self.plural_name}; there are: {known}"
            )
        found = self.fields[name]
        if clause.field != base and not isinstance(found, DocumentSearchField):
            raise InvalidSearchValue(clause.position, f"'{name}' is no document, so there is nothing inside it")
        return name, found

    def is_query(self, text: str) -> bool:
        """Whether a text begins as a query does: with a field of ours that is compared with something."""
        begins = CLAUSE_AHEAD.match(text)
        return begins is not None and base_of(begins["field"]).lower() in self.names_by_lowercase


def base_of(field: str) -> str:
    """The name of a field without the place inside it."""
    return field.replace("[", ".").split(".")[0]


class SearchQuery:
    """One search's conditions. `extra_clauses` are conditions that come beside the query."""

    def __init__(
        self, language: SearchLanguage, query: str = "", free_text: str = "", extra_clauses: Iterable[Clause] = ()
    ) -> None:
        self.language, self.query = language, query
        condition = parse_query(query)
        parts = condition.parts if isinstance(condition, All) else (condition,) if condition else ()
        self.parts: tuple[Condition, ...] = tuple(map(self.rewrite_for_index, (*extra_clauses, *parts)))
        ranked = [(rank, at) for at, part in enumerate(self.parts) if (rank := self.rank(part)) is not None]
        self.lead = self.parts[min(ranked)[1]] if ranked else None
        self.words = words_of(free_text)

    @property
    def is_ordered(self) -> bool:
        """Whether the rows come out of the index that leads with the newest first."""
        if self.lead is None:
            return True
        is_single = isinstance(self.lead, Clause) and self.lead.operator in ("=", "IN") and len(self.lead.values) == 1
        return is_single and self.language.field_of(self.lead)[1].is_ordered

    @property
    def scan_limit(self) -> int | None:
        """How many rows may be looked at; None is all that the index leads to."""
        rest = [part for part in self.parts if part is not self.lead or self.is_rare(part)]
        scan_limits = [scan_limit for part in rest if (scan_limit := self.scan_limit_of(part)) is not None]
        return min([*scan_limits, *([FREE_TEXT_SCAN_LIMIT] if self.words else [])], default=None)

    def condition(self, without_lead_index: bool = False) -> Q:
        """Everything that is asked for, as a condition on rows; raises Invalid where a value does not fit."""
        asked = [self.build_condition(part, without_lead_index or part is not self.lead) for part in self.parts]
        index_conditions = [self.asked(part)[1].index_filter(part) for part in self.parts if self.is_covered(part)]
        return reduce(and_, [*asked, *index_conditions], self.free_text_condition())

    def lead_condition(self) -> Q:
        """What the index is asked for, and the bounds of time."""
        bounds = [
            self.build_condition(part, without_index=False) for part in self.parts if self.is_on_order_column(part)
        ]
        clauses = [part for part in self.parts if isinstance(part, Clause)]
        with self.locate_errors():
            bounds += [bound for part in clauses if (bound := self.asked(part)[1].bounds(part)) is not None]
        if self.is_rare(self.lead):
            bounds.append(self.asked(self.lead)[1].index_condition(self.lead))
        elif self.lead is not None:
            bounds.append(self.build_condition(self.lead, without_index=False))
        return reduce(and_, bounds, EVERYTHING)

    def is_rare(self, part: Condition | None) -> bool:
        """Whether an index lists rows for it that still have to be looked at."""
        return isinstance(part, Clause) and isinstance(self.asked(part)[1], RareTextField)

    def free_text_condition(self) -> Q:
        found = EVERYTHING
        for word in self.words:
            anywhere = NOTHING
            for text in self.language.texts:
                anywhere |= Q(contains_words(F(text), word))
            found &= anywhere
        return found

    def rewrite_for_index(self, part: Condition) -> Condition:
        """The same in the words that indexes answer best."""
        match part:
            case Clause():
                with self.locate_errors():
                    return self.asked(part)[1].rewrite_for_index(part)
            case Not(part=Clause(operator="=" | "IN") as clause):
                found = self.asked(clause)[1]
                # All other words of a field are known.
                return found.negate_clause(clause) if isinstance(found, ChoiceField) else part
            case Not():
                return part
        return replace(part, parts=tuple(map(self.rewrite_for_index, part.parts)))

    def rank(self, part: Condition) -> int | None:
        match part:
            case Clause():
                return self.asked(part)[1].rank_of(part)
            case Not():
                return None
        ranks = [self.rank(each) for each in part.parts]
        known = [rank for rank in ranks if rank is not None]
        if isinstance(part, Any):
            return max(known) if len(known) == len(ranks) else None
        return min(known, default=None)

    def scan_limit_of(self, part: Condition) -> int | None:
        match part:
            case Clause():
                return (
                    None if self.is_covered(part) or self.is_on_order_column(part) else self.asked(part)[1].scan_limit
                )
            case Not():
                return self.scan_limit_of(part.part)
        scan_limits = [scan_limit for each in part.parts if (scan_limit := self.scan_limit_of(each)) is not None]
        return min(scan_limits, default=None)

    def is_covered(self, part: Condition) -> bool:
        """Whether the index that leads tells it too."""
        leading = self.asked(self.lead)[0] if isinstance(self.lead, Clause) else None if self.lead else ""
        return isinstance(part, Clause) and part is not self.lead and self.asked(part)[1].is_covered_by(leading, part)

    def is_on_order_column(self, part: Condition) -> bool:
        """Whether it bounds the moment by which rows are ordered."""
        return isinstance(part, Clause) and self.asked(part)[1].is_order_column

    def build_condition(self, part: Condition, without_index: bool) -> Q:
        match part:
            case Clause():
                _, found = self.asked(part)
                with self.locate_errors():
                    return found.condition(part, without_index and not self.is_on_order_column(part))
            case Not():
                return ~self.build_condition(part.part, without_index)
        found = [self.build_condition(each, without_index) for each in part.parts]
        return reduce(lambda one, other: one | other if isinstance(part, Any) else one & other, found)

    def asked(self, clause: Clause) -> tuple[str, SearchField]:
        with self.locate_errors():
            return self.language.field_of(clause)

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """What cannot be read is refused with its place in the query."""
        try:
            yield
        except InvalidSearchValue as misread:
            raise syntax_error(self.query, misread.position, misread.message) from None


def words_of(free_text: str) -> list[str]:
    """The words that are looked for anywhere, those between quotes together; none for `*`."""
    pieces = free_text.split('"')
    found = [piece.strip() for piece in pieces[1::2]]
    for piece in pieces[::2]:
        found += piece.split()
    words = [word for each in found if (word := each.strip("*"))]
    if len(words) > MOST_WORDS or any(len(word) > 200 for word in words):
        raise Invalid(f"freeText may have at most {MOST_WORDS} words of at most 200 characters.")
    return words
