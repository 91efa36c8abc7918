"""The few expressions that searches need beside Django's own, in the words of both databases."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.models import BigIntegerField, BooleanField, Expression, F, Func, Value
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

COMPARED = {"=": Exact, ">": GreaterThan, ">=": GreaterThanOrEqual, "<": LessThan, "<=": LessThanOrEqual}
MOST_STARS, LONGEST_PATTERN = 5, 1_000


BULK_JOIN_SETTINGS = ("enable_hashjoin", "enable_mergejoin", "max_parallel_workers_per_gather")


@contextmanager
def disable_bulk_joins() -> Iterator[None]:
    """Let PostgreSQL look up what rows are joined with by its key.

    It takes a bounded search for one of all rows, and would read the other table whole, with all processors.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("; ".join(f"SET {way} = 0" for way in BULK_JOIN_SETTINGS))
        try:
            yield
        finally:
            cursor.execute("; ".join(f"RESET {way}" for way in BULK_JOIN_SETTINGS))


class UnindexedColumn(Func):
    """A column that SQLite shall not look up in an index.

    SQLite knows nothing of how often a value occurs: told of two indexes it may well take the one that finds a million
    rows. So one field leads, and the others are hidden. PostgreSQL counts, and chooses for itself.
    """

    template = "+%(expressions)s"

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return compiler.compile(self.source_expressions[0])


class IsNotNull(Func):
    """Whether a column has a value; SQLite shall not look for that in an index."""

    template = "+%(expressions)s IS NOT NULL"
    output_field = BooleanField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return super().as_sql(compiler, connection, template="%(expressions)s IS NOT NULL", **context)


class Unordered(Func):
    """A column to order by that no database reads in the order of an index: few rows are found first, then sorted."""

    template = "+%(expressions)s"

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        is_text = self.output_field.get_internal_type() in ("CharField", "TextField", "IdField")
        template = "(%(expressions)s || '')" if is_text else "(%(expressions)s + 0)"
        return super().as_sql(compiler, connection, template=template, **context)


class MatchesPattern(Func):
    """Whether a text matches a pattern of LIKE; small and capital letters alike."""

    template = "(%(expressions)s ESCAPE '\\')"
    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return super().as_sql(compiler, connection, **{"arg_joiner": " LIKE ", **context})

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, arg_joiner=" ILIKE ", **context)


def column_expression(name: str, without_index: bool) -> Expression | F:
    """A column to compare with."""
    return UnindexedColumn(F(name)) if without_index else F(name)


def compare_column(left: Any, operator: str, value: Any) -> Expression:
    """One comparison."""
    return COMPARED[operator](left, typed_number(value))


def compare_any(left: Any, values: list[Any]) -> Expression:
    """IN; a single value is compared with =."""
    return (
        Exact(left, typed_number(values[0]))
        if len(values) == 1
        else In(left, [typed_number(value) for value in values])
    )


def typed_number(value: Any) -> Any:
    """A number with all its bits: PostgreSQL would be given a short one and lose some."""
    return Value(value, output_field=BigIntegerField()) if isinstance(value, int) else value


def matches_pattern(left: Any, pattern: str) -> Expression:
    """Whether the text matches, `*` in the pattern standing for anything."""
    return MatchesPattern(left, Value(to_like_pattern(pattern)))


def contains_words(left: Any, words: str) -> Expression:
    """Whether the text holds these words."""
    return MatchesPattern(left, Value(f"%{escape_like(words)}%"))


def to_like_pattern(pattern: str) -> str:
    """A pattern of LIKE from one with stars."""
    return escape_like(pattern).replace("*", "%")


def escape_like(text: str) -> str:
    """A text in which nothing has a meaning for LIKE."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
