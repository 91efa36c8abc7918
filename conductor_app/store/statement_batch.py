"""The statements of one decision, collected, sent and checked together."""

from collections.abc import Sequence
from typing import Any

from django.db import connection, models

from .payload_placement import PayloadPlacement
from .statements import execute_together, insert_statements, update_statements


class StaleRow(Exception):
    """Another process changed a row between reading and writing; the decision must be repeated."""


COPY_MIN_ROWS = 50
"""Larger inserts use COPY on PostgreSQL, because a statement with many parameters is slow to parse."""


class StatementBatch:
    """Statements that do not depend on one another's results."""

    def __init__(self, placement: PayloadPlacement | None = None) -> None:
        self.placement = placement or PayloadPlacement()
        self.statements: list[tuple[str, Sequence[Any], int | None]] = []
        self.copies: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = []

    def insert(self, model: type[models.Model], columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add an insert of rows."""
        if len(rows) > COPY_MIN_ROWS and connection.vendor == "postgresql":
            self.copies.append((model._meta.db_table, columns, rows))
        else:
            self.statements += [(sql, params, None) for sql, params in insert_statements(model, columns, rows)]

    def update(
        self, model: type[models.Model], columns: Sequence[str], rows: Sequence[tuple[str, str, Sequence[Any]]]
    ) -> None:
        """Add an update. `rows`: for each row its id, its expected status, and the new values."""
        self.statements += update_statements(model, columns, rows)

    def run(self, sql: str, params: Sequence[Any], expected: int | None = None) -> None:
        """Add a statement. `expected`: the number of rows that it must change, or None for any."""
        self.statements.append((sql, params, expected))

    def send(self) -> None:
        """Execute all statements.

        Raises:
            StaleRow: when another process has changed a row
            PayloadsTooLarge: before any write, when payloads must be stored first.
        """
        self.statements += self.placement.statements()
        # One round trip instead of about six.
        counts = execute_together([(sql, params) for sql, params, _ in self.statements])
        for (_, _, expected), count in zip(self.statements, counts, strict=True):
            if expected is not None and count != expected:
                raise StaleRow
        for copy in self.copies:
            _copy_rows(*copy)


def _copy_rows(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
