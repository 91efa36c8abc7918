"""The kinds of fields that a search knows: how each turns a comparison into a condition on rows.

A field says how well an index narrows it down (`rank`): 0 finds a handful of rows, higher ones more; None is a field
whose rows have to be looked at one by one, so a search by it alone is bounded (`pages.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Expression, Q

from ...core.errors import Invalid
from .documents import Inside, path_of
from .grammar import Clause, Value
from .sql import LONGEST_PATTERN, MOST_STARS, column, compared, containing, matching, one_of

EVERYTHING, NOTHING = ~Q(pk__in=[]), Q(pk__in=[])
COLUMNS, RARE, DOCUMENTS = 200_000, 50_000, 20_000
LEAST, MOST = -(2**63), 2**63 - 1


class Misread(Invalid):
    """A value that its field cannot be compared with."""

    def __init__(self, place: int, complaint: str) -> None:
        super().__init__(complaint)
        self.place = place


@dataclass(frozen=True)
class Field:
    """Texts of one column. Without an index for `!=`, `<` and patterns, only = and IN are quick."""

    column: str
    rank: int | None = None
    partial: bool = False
    """Whether its index holds only rows where it is not empty."""
    read_with: frozenset[str] = frozenset()
    """Fields whose index tells this one too; an empty name is the order of all rows."""
    reach: int = COLUMNS
    """How many rows are looked at for it where no index tells it."""
    is_ordered: bool = True
    """Whether its index lists the rows of one value in the order in which they began."""
    is_bound: bool = False
    """Whether it is the moment by which rows are ordered."""
    is_nullable: bool = False

    def bounds(self, clause: Clause) -> Q | None:
        """What it says of the moment by which rows are ordered, if anything."""
        return None

    def plain(self, clause: Clause) -> Clause:
        """The same asked in a way that an index answers, where something can be looked up first."""
        return clause

    def rank_of(self, clause: Clause) -> int | None:
        """How well an index answers this comparison."""
        is_sharp = clause.operator in ("=", "IN") and all(self.is_sharp(value.text) for value in clause.values)
        return self.rank if is_sharp else None

    def is_sharp(self, text: str) -> bool:
        return "*" not in text and not (self.partial and not text)

    def condition(self, clause: Clause, hidden: bool) -> Q:
        """The condition on rows; `hidden`: another field leads."""
        if clause.operator == "NULL":
            return Q(**{f"{self.column}__isnull": True}) if self.is_nullable else self.null(column(self.column, hidden))
        found = self.comparison(clause, column(self.column, hidden)) & (self.bounds(clause) or EVERYTHING)
        # Said, because the opposite of an unknown truth is unknown too: `!=` finds what has no value.
        return found & Q(**{f"{self.column}__isnull": False}) if self.is_nullable else found

    def comparison(self, clause: Clause, left: Any) -> Q:
        values = clause.values
        match clause.operator:
            case "=" | "IN":
                return self.equal(left, values)
            case "BETWEEN":
                lower, upper = map(self.value, values)
                return Q(compared(left, ">=", lower)) & Q(compared(left, "<=", upper))
            case "STARTS_WITH":
                return Q(matching(left, checked(values[0], values[0].text.replace("*", "") + "*")))
            case _:
                return Q(compared(left, clause.operator, self.value(values[0])))

    def equal(self, left: Any, values: Sequence[Value]) -> Q:
        exact = [self.value(value) for value in values if "*" not in value.text]
        found = Q(one_of(left, exact)) if exact else NOTHING
        for value in values:
            if "*" in value.text:
                found |= Q(matching(left, checked(value, value.text)))
        if self.partial and exact and all(exact):
            # The words of the index's own condition, without which SQLite does not take it.
            found &= ~Q(**{self.column: ""})
        return found

    def null(self, left: Any) -> Q:
        return Q(compared(left, "=", ""))

    def value(self, value: Value) -> Any:
        return value.text


@dataclass(frozen=True)
class Id(Field):
    """Ids: STARTS_WITH and `abc*` are ranges of the index."""

    is_ordered: bool = False

    def rank_of(self, clause: Clause) -> int | None:
        if clause.operator == "STARTS_WITH" or (clause.operator == "=" and is_prefix(clause.values[0].text)):
            return self.rank
        return super().rank_of(clause)

    def condition(self, clause: Clause, hidden: bool) -> Q:
        text = clause.values[0].text if clause.values else ""
        if clause.operator == "STARTS_WITH" or (clause.operator == "=" and is_prefix(text)):
            start = text.rstrip("*")
            # The range is what an index reads; collations disagree on more than it.
            return Q(**{f"{self.column}__gte": start, f"{self.column}__lte": start + LAST}) & Q(
                **{f"{self.column}__startswith": start}
            )
        return super().condition(clause, hidden)


LAST = "z" * 8
"""Sorts behind every character of an id, in the collations of both databases."""


def is_prefix(text: str) -> bool:
    return len(text) > 1 and text.endswith("*") and "*" not in text[:-1]


@dataclass(frozen=True)
class Rare(Field):
    """Texts that few rows have, too long for an index: it lists only the rows that have one."""

    reach: int = RARE

    def rank_of(self, clause: Clause) -> int | None:
        is_there = clause.operator in ("=", "IN", "STARTS_WITH") and all(value.text for value in clause.values)
        return self.rank if is_there else None

    def index_condition(self, clause: Clause) -> Q:
        """What the index lists."""
        return ~Q(**{self.column: ""})

    def comparison(self, clause: Clause, left: Any) -> Q:
        found = super().comparison(clause, left)
        return found & self.index_condition(clause) if self.rank_of(clause) is not None else found


@dataclass(frozen=True)
class Whole(Field):
    """Whole numbers."""

    def value(self, value: Value) -> int:
        text = value.text.strip()
        if not text.removeprefix("-").isdecimal() or not text.isascii():
            raise Misread(value.place, "expected a whole number")
        return max(LEAST, min(MOST, int(text[:40])))

    def equal(self, left: Any, values: Sequence[Value]) -> Q:
        return Q(one_of(left, [self.value(value) for value in values]))

    def null(self, left: Any) -> Q:
        return NOTHING


@dataclass(frozen=True)
class Moment(Whole):
    """Moments: epoch milliseconds, or an ISO date such as 2026-11-21T07:00Z."""

    is_ordered: bool = False
    begun_by: Callable[[int], Q] | None = None
    """Rows that had begun by a moment: nothing ends before it begins."""

    def rank_of(self, clause: Clause) -> int | None:
        return None if clause.operator == "NULL" else self.rank

    def bounds(self, clause: Clause) -> Q | None:
        if self.begun_by is None or clause.operator not in ("=", "<", "<=", "BETWEEN"):
            return None
        return self.begun_by(self.value(clause.values[-1]))

    def value(self, value: Value) -> int:
        text = value.text.strip()
        if text.removeprefix("-").isdecimal():
            return super().value(value)
        try:
            moment = datetime.fromisoformat(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            raise Misread(value.place, "expected a moment: epoch milliseconds, or 2026-11-21T07:00:00Z") from None


@dataclass(frozen=True)
class Words(Field):
    """One of a few words; `spelled` are all of them."""

    spelled: tuple[str, ...] = ()

    def plain(self, clause: Clause) -> Clause:
        """The words themselves, in place of a pattern."""
        if clause.operator not in ("=", "IN", "STARTS_WITH"):
            return clause
        return Clause(
            clause.field, "IN", tuple(Value(word, clause.place) for word in self.chosen(clause)), clause.place
        )

    def rank_of(self, clause: Clause) -> int | None:
        return self.rank if clause.operator in ("=", "IN", "STARTS_WITH") else None

    def condition(self, clause: Clause, hidden: bool) -> Q:
        if clause.operator not in ("=", "IN", "STARTS_WITH"):
            return super().condition(clause, hidden)
        found = self.chosen(clause)
        return self.among(found, hidden) if found else NOTHING

    def chosen(self, clause: Clause) -> list[str]:
        """The words that are asked for."""
        more = "*" if clause.operator == "STARTS_WITH" else ""
        return [word for word in self.spelled if any(fits(word, value.text + more) for value in clause.values)]

    def opposite(self, clause: Clause) -> Clause:
        """The comparison that finds all other words: an index answers it too."""
        others = [word for word in self.spelled if not any(fits(word, value.text) for value in clause.values)]
        return Clause(clause.field, "IN", tuple(Value(word, clause.place) for word in others), clause.place)

    def among(self, found: list[str], hidden: bool) -> Q:
        return Q(one_of(column(self.column, hidden), found))


def fits(word: str, pattern: str) -> bool:
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
class Names(Rare):
    """Names out of a list kept as JSON, such as the references that failed."""

    def index_condition(self, clause: Clause) -> Q:
        return ~Q(**{self.column: []})

    def null(self, left: Any) -> Q:
        return Q(compared(left, "=", "[]"))

    def condition(self, clause: Clause, hidden: bool) -> Q:
        if clause.operator not in ("=", "IN", "NULL"):
            raise Misread(clause.place, f"{clause.field} can be compared with =, !=, IN and IS NULL only")
        return super().condition(clause, hidden)

    def equal(self, left: Any, values: Sequence[Value]) -> Q:
        found = NOTHING
        for value in values:
            text = checked(value, value.text)
            found |= Q(matching(left, f"*{text}*") if "*" in text else containing(left, f'"{text}"'))
        return found


@dataclass(frozen=True)
class Document(Field):
    """An input, an output or the variables: as a whole with stars, or at a path."""

    reach: int = DOCUMENTS

    def condition(self, clause: Clause, hidden: bool) -> Q:
        path = path_of(clause.field[len(clause.field.split(".")[0].split("[")[0]) :])
        if not path:
            return super().condition(clause, hidden)
        match clause.operator:
            case "IN":
                found = NOTHING
                for value in clause.values:
                    found |= Q(Inside(self.column, path, "=", checked(value, value.text)))
                return found
            case "BETWEEN":
                lower, upper = (checked(value, value.text) for value in clause.values)
                return Q(Inside(self.column, path, ">=", lower)) & Q(Inside(self.column, path, "<=", upper))
        return Q(Inside(self.column, path, clause.operator, *(checked(v, v.text) for v in clause.values)))


@dataclass(frozen=True)
class Constant(Field):
    """A field that says the same of everything here."""

    says: str = ""

    def rank_of(self, clause: Clause) -> int | None:
        return None

    def condition(self, clause: Clause, hidden: bool) -> Q:
        is_true = clause.operator in ("=", "IN") and any(fits(self.says.upper(), v.text) for v in clause.values)
        return EVERYTHING if is_true else NOTHING


@dataclass(frozen=True)
class Told(Field):
    """A field whose rows a function knows to find: from the texts asked for to a condition."""

    find: Callable[[str], Q] = lambda text: NOTHING

    def condition(self, clause: Clause, hidden: bool) -> Q:
        if clause.operator not in ("=", "IN"):
            return super().condition(clause, hidden)
        found = NOTHING
        for value in clause.values:
            found |= self.find(checked(value, value.text))
        return found


def checked(value: Value, pattern: str) -> str:
    """The pattern, if it is not too long or wild for a database."""
    if len(pattern) > LONGEST_PATTERN:
        raise Misread(value.place, f"a value with a pattern may have at most {LONGEST_PATTERN} characters")
    if pattern.count("*") > MOST_STARS:
        raise Misread(value.place, f"a pattern may have at most {MOST_STARS} stars")
    return pattern


def any_of(conditions: Iterable[Q | Expression]) -> Q:
    """One of these."""
    found = NOTHING
    for condition in conditions:
        found |= Q(condition)
    return found
