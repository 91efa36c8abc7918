"""The statements of one decision: collected, sent together, and checked together."""

from collections.abc import Sequence
from typing import Any

from django.db import connection, models

from .payload_placement import PayloadPlacement
from .statements import execute_together, insert_statements, update_statements


class StaleRow(Exception):
    """Another process changed a row between reading and writing; the decision must be repeated."""


COPY_MIN_ROWS = 50
"""Rows from which on PostgreSQL is sent them as a copy: a statement with that many parameters is slow to take apart."""


class StatementBatch:
    """Statements that need not see one another's results."""

    def __init__(self, placement: PayloadPlacement | None = None) -> None:
        self.placement = placement or PayloadPlacement()
        self.statements: list[tuple[str, Sequence[Any], int | None]] = []
        self.copies: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = []

    def insert(self, model: type[models.Model], columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Write new rows, many in one statement."""
        if len(rows) > COPY_MIN_ROWS and connection.vendor == "postgresql":
            self.copies.append((model._meta.db_table, columns, rows))
        else:
            self.statements += [(sql, params, None) for sql, params in insert_statements(model, columns, rows)]

    def update(
        self, model: type[models.Model], columns: Sequence[str], rows: Sequence[tuple[str, str, Sequence[Any]]]
    ) -> None:
        """Change rows, each named by its id and the status it was seen in."""
        self.statements += update_statements(model, columns, rows)

    def run(self, sql: str, params: Sequence[Any], expected: int | None = None) -> None:
        """Add any other statement. `expected`: the number of rows that it must change."""
        self.statements.append((sql, params, expected))

    def send(self) -> None:
        """Execute all statements.

        Raises:
            StaleRow: when a row was changed by another process
            PayloadsTooLarge: before any write, when payloads must be stored first.
        """
        self.statements += self.placement.statements()
        # A decision waits for its server once instead of six times.
        counts = execute_together([(sql, params) for sql, params, _ in self.statements])
        for (_, _, expected), count in zip(self.statements, counts, strict=True):
            if expected is not None and count != expected:
                raise StaleRow
        for copy in self.copies:
            _copy_rows(*copy)


def _copy_rows(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write new rows as PostgreSQL takes them fastest."""
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
