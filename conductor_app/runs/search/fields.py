"""Field types of the search: each turns a comparison into a condition on rows.

`rank` states how selective the index of a field is: 0 finds a few rows, higher ranks find more. None means that no
index helps, so that a search by this field alone scans a bounded number of rows (`results.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, BooleanField, Expression, F, Func, Q, Value
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual
from django.db.models.sql.compiler import SQLCompiler

from ...core.errors import Invalid
from ...core.masking import MARK
from ...db.database import connection
from ...db.statements import read_snapshot
from .parser import Clause, QueryValue

COMPARED = {"=": Exact, ">": GreaterThan, ">=": GreaterThanOrEqual, "<": LessThan, "<=": LessThanOrEqual}
MAX_STARS, MAX_PATTERN_LENGTH = 5, 1_000


BULK_JOIN_SETTINGS = ("enable_hashjoin", "enable_mergejoin", "max_parallel_workers_per_gather")


@contextmanager
def disable_bulk_joins() -> Iterator[None]:
    """Make PostgreSQL look up joined rows by their key.

    It estimates a bounded search as one over all rows, and would read the whole joined table in parallel.
    """
    if connection.vendor != "postgresql":
        yield
        return
    # In one transaction, because the next may have another connection of a pooler.
    with read_snapshot(), connection.cursor() as cursor:
        cursor.execute("; ".join(f"SET LOCAL {way} = 0" for way in BULK_JOIN_SETTINGS))
        yield
        cursor.execute("; ".join(f"SET LOCAL {way} = DEFAULT" for way in BULK_JOIN_SETTINGS))


class UnindexedColumn(Func):
    """A column that SQLite must not look up in an index.

    SQLite has no statistics on values: given two indexes, it may use the one that finds a million rows. Therefore one
    field leads, and the indexes of the others are hidden. PostgreSQL has statistics and chooses by itself.
    """

    template = "+%(expressions)s"

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> tuple[str, Any]:
        return compiler.compile(self.source_expressions[0])


class IsNotNull(Func):
    """IS NOT NULL that SQLite must not look up in an index."""

    template = "+%(expressions)s IS NOT NULL"
    output_field = BooleanField()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> tuple[str, Any]:
        return super().as_sql(compiler, connection, template="%(expressions)s IS NOT NULL", **context)


class Unordered(Func):
    """A column to sort by that hides its index, so that the database first finds the few rows and then sorts them."""

    template = "+%(expressions)s"

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> tuple[str, Any]:
        is_text = self.output_field.get_internal_type() in ("CharField", "TextField", "IdField")
        template = "(%(expressions)s || '')" if is_text else "(%(expressions)s + 0)"
        return super().as_sql(compiler, connection, template=template, **context)


class MatchesPattern(Func):
    """Case-insensitive match with a LIKE pattern."""

    template = "(%(expressions)s ESCAPE '\\')"
    output_field = BooleanField()

    arg_joiner = " LIKE "

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, arg_joiner=" ILIKE ", **context)


def column_expression(name: str, without_index: bool) -> Expression | F:
    """Return a column expression, with its index hidden if `without_index`."""
    return UnindexedColumn(F(name)) if without_index else F(name)


def compare_column(left: Expression | F, operator: str, value: object) -> Expression:
    return COMPARED[operator](left, typed_number(value))


def compare_any(left: Expression | F, values: list[Any]) -> Expression:
    """Return an IN expression, or = for a single value."""
    return (
        Exact(left, typed_number(values[0]))
        if len(values) == 1
        else In(left, [typed_number(value) for value in values])
    )


def typed_number(value: object) -> Any:
    """Return an integer as a 64-bit parameter, since PostgreSQL would otherwise receive a smaller type."""
    return Value(value, output_field=BigIntegerField()) if isinstance(value, int) else value


def matches_pattern(left: Expression | F, pattern: str) -> Expression:
    """Return the match with a pattern in which `*` stands for any text."""
    return MatchesPattern(left, Value(to_like_pattern(pattern)))


def contains_words(left: Expression | F, words: str) -> Expression:
    """Return the case-insensitive search for a text."""
    return MatchesPattern(left, Value(f"%{escape_like(words)}%"))


def to_like_pattern(pattern: str) -> str:
    """Convert a pattern with `*` to a LIKE pattern."""
    return escape_like(pattern).replace("*", "%")


def escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


MATCH_ALL, MATCH_NONE = ~Q(pk__in=[]), Q(pk__in=[])
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
    is_nullable: bool = False

    def is_covered_by(self, leading: str | None, clause: Clause) -> bool:
        """Return True if the index of the leading field includes this comparison."""
        return leading in self.covered_by

    def index_filter(self, clause: Clause) -> Q:
        """Return the condition of the leading index if it is partial."""
        return MATCH_ALL

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
            self.bounds(clause) or MATCH_ALL
        )
        # Explicit, because NOT of an unknown result is unknown too: `!=` must find rows without a value.
        return found & Q(**{f"{self.column}__isnull": False}) if self.is_nullable else found

    def comparison(self, clause: Clause, left: Expression | F) -> Q:
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

    def equals_any(self, left: Expression | F, values: Sequence[QueryValue]) -> Q:
        exact = [self.value(value) for value in values if "*" not in value.text]
        found = Q(compare_any(left, exact)) if exact else MATCH_NONE
        for value in values:
            if "*" in value.text:
                found |= Q(matches_pattern(left, check_pattern(value, value.text)))
        if self.has_partial_index and exact and all(exact):
            # SQLite uses the partial index only if the query repeats its condition.
            found &= ~Q(**{self.column: ""})
        return found

    def null_condition(self, left: Expression | F) -> Q:
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


def without_masked_values(column: str) -> Q:
    """Return the condition that a text has no encrypted values: a search in it would reveal their characters."""
    return ~Q(contains_words(F(column), MARK)) if column in ("input", "output", "variables") else MATCH_ALL


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
        return ~Q(**{self.column: ""})

    def comparison(self, clause: Clause, left: Expression | F) -> Q:
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
        return self.choices_condition(found, without_index) if found else MATCH_NONE

    def matching_choices(self, clause: Clause) -> list[str]:
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
        return MATCH_ALL if is_true else MATCH_NONE


@dataclass(frozen=True)
class NameListField(RareTextField):
    """A JSON list of names, such as the failed references."""

    def index_condition(self, clause: Clause) -> Q:
        return ~Q(**{self.column: []})

    def null_condition(self, left: Expression | F) -> Q:
        return Q(compare_column(left, "=", "[]"))

    def condition(self, clause: Clause, without_index: bool) -> Q:
        """Build the condition on a list of names.

        Raises:
            InvalidSearchValue: when the operator is not =, !=, IN or IS NULL.
        """
        if clause.operator not in ("=", "IN", "NULL"):
            raise InvalidSearchValue(clause.position, f"{clause.field} supports only =, !=, IN and IS NULL")
        return super().condition(clause, without_index)

    def equals_any(self, left: Expression | F, values: Sequence[QueryValue]) -> Q:
        found = MATCH_NONE
        for value in values:
            text = check_pattern(value, value.text)
            found |= Q(matches_pattern(left, f"*{text}*") if "*" in text else contains_words(left, f'"{text}"'))
        return found


MIN_VALUE, MAX_VALUE = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class IntegerField(SearchField):
    def value(self, value: QueryValue) -> int:
        """Parse an integer, limited to 64 bits.

        Raises:
            InvalidSearchValue: when the text is not an integer.
        """
        text = value.text.strip()
        if not text.removeprefix("-").isdecimal() or not text.isascii():
            raise InvalidSearchValue(value.position, "expected an integer")
        return max(MIN_VALUE, min(MAX_VALUE, int(text[:40])))

    def comparison(self, clause: Clause, left: Expression | F) -> Q:
        """Build the comparison of a number.

        Raises:
            InvalidSearchValue: when the operator is STARTS_WITH, or a value is not a number.
        """
        if clause.operator == "STARTS_WITH":
            raise InvalidSearchValue(clause.position, f"{clause.field} is a number and does not support STARTS_WITH")
        return super().comparison(clause, left)

    def equals_any(self, left: Expression | F, values: Sequence[QueryValue]) -> Q:
        return Q(compare_any(left, [self.value(value) for value in values]))

    def null_condition(self, left: Expression | F) -> Q:
        return MATCH_NONE


@dataclass(frozen=True)
class TimeField(IntegerField):
    """A time column. Values are epoch milliseconds or ISO 8601, such as 2026-11-21T07:00Z."""

    is_ordered: bool = False
    started_by_time: Callable[[int], Q] | None = None
    """Returns the condition for rows that were created by a given time: no row ends before its creation."""

    def rank_of(self, clause: Clause) -> int | None:
        return None if clause.operator == "NULL" else self.rank

    def bounds(self, clause: Clause) -> Q | None:
        if self.started_by_time is None or clause.operator not in ("=", "<", "<=", "BETWEEN"):
            return None
        return self.started_by_time(self.value(clause.values[-1]))

    def value(self, value: QueryValue) -> int:
        """Parse a time into epoch milliseconds. ISO 8601 without an offset is UTC.

        Raises:
            InvalidSearchValue: when the text is not a time.
        """
        text = value.text.strip()
        if text.removeprefix("-").isdecimal():
            return super().value(value)
        try:
            moment = datetime.fromisoformat(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            raise InvalidSearchValue(
                value.position, "expected a time in epoch milliseconds or ISO 8601, such as 2026-11-21T07:00:00Z"
            ) from None
