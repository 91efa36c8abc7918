"""SQL expressions of the search for SQLite and PostgreSQL that Django does not provide."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.models import BigIntegerField, BooleanField, Expression, F, Func, Value
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from ....models.snapshots import read_snapshot

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

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return compiler.compile(self.source_expressions[0])


class IsNotNull(Func):
    """IS NOT NULL that SQLite must not look up in an index."""

    template = "+%(expressions)s IS NOT NULL"
    output_field = BooleanField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return super().as_sql(compiler, connection, template="%(expressions)s IS NOT NULL", **context)


class Unordered(Func):
    """A column to sort by that hides its index, so that the database first finds the few rows and then sorts them."""

    template = "+%(expressions)s"

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        is_text = self.output_field.get_internal_type() in ("CharField", "TextField", "IdField")
        template = "(%(expressions)s || '')" if is_text else "(%(expressions)s + 0)"
        return super().as_sql(compiler, connection, template=template, **context)


class MatchesPattern(Func):
    """Case-insensitive match with a LIKE pattern."""

    template = "(%(expressions)s ESCAPE '\\')"
    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return super().as_sql(compiler, connection, **{"arg_joiner": " LIKE ", **context})

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, arg_joiner=" ILIKE ", **context)


def column_expression(name: str, without_index: bool) -> Expression | F:
    """Return a column expression, with its index hidden if `without_index`."""
    return UnindexedColumn(F(name)) if without_index else F(name)


def compare_column(left: Any, operator: str, value: Any) -> Expression:
    """Return a comparison expression."""
    return COMPARED[operator](left, typed_number(value))


def compare_any(left: Any, values: list[Any]) -> Expression:
    """Return an IN expression, or = for a single value."""
    return (
        Exact(left, typed_number(values[0]))
        if len(values) == 1
        else In(left, [typed_number(value) for value in values])
    )


def typed_number(value: Any) -> Any:
    """Return an integer as a 64-bit parameter, since PostgreSQL would otherwise receive a smaller type."""
    return Value(value, output_field=BigIntegerField()) if isinstance(value, int) else value


def matches_pattern(left: Any, pattern: str) -> Expression:
    """Return the match with a pattern in which `*` stands for any text."""
    return MatchesPattern(left, Value(to_like_pattern(pattern)))


def contains_words(left: Any, words: str) -> Expression:
    """Return the case-insensitive search for a text."""
    return MatchesPattern(left, Value(f"%{escape_like(words)}%"))


def to_like_pattern(pattern: str) -> str:
    """Convert a pattern with `*` to a LIKE pattern."""
    return escape_like(pattern).replace("*", "%")


def escape_like(text: str) -> str:
    """Escape the special characters of LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
