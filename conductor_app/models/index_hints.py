"""Names of indexes in statements, for SQLite."""

from django.db import connection


def index_hint(index: str) -> str:
    """Return the clause after a table's name that makes SQLite use an index.

    Without statistics, SQLite prefers any index on the same columns to one with a condition, which lists far fewer
    rows. PostgreSQL chooses by its statistics and has no such clause.
    """
    return f" INDEXED BY {index}" if connection.vendor == "sqlite" else ""
