"""The statements of one decision, and the repetition of stale ones.

The statements of one decision, collected, sent and checked together.

Repeat transactions that met rows changed by another process, or a transient error.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db import DataError, connection, models

from ...core.errors import Busy
from ...db.fields import dumps
from ...db.statements import (
    MAX_BATCH_ROWS,
    StatementResult,
    execute_batch,
    insert_statements,
    supports_commit_in_batch,
    update_statements,
)
from ...db.transient_errors import FaultTolerance
from ...payloads.store import PayloadPlacement
from ..models import Message


class StaleRow(Exception):
    """Another process changed a row between reading and writing; the decision must be repeated."""


DIVISION_BY_ZERO = "22012"
REQUIRE_COUNT = "WITH changed AS ({sql} RETURNING 1) SELECT 1 / CAST(COUNT(*) = {expected} AS integer) FROM changed"
"""A statement that fails if it does not change the expected number of rows, because a commit follows it at once."""
COPY_MIN_ROWS = 50
"""Larger inserts use COPY on PostgreSQL, because a statement with many parameters is slow to parse."""
MESSAGE_COLUMNS = ('"to"', "subject", "facts", "sent_at", "due_at", "tries", "error")


class StatementBatch:
    """Statements that do not depend on one another's results.

    `ends_transaction`: nothing is written after this batch, so PostgreSQL gets the COMMIT in the same round trip.
    """

    def __init__(self, placement: PayloadPlacement | None = None, *, ends_transaction: bool = False) -> None:
        self.placement = placement or PayloadPlacement()
        self.ends_transaction = ends_transaction
        self.statements: list[tuple[str, Sequence[Any], int | None]] = []
        self.copies: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = []
        self.messages: dict[int, Sequence[Message]] = {}

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

    def insert_messages(self, messages: Sequence[Message]) -> None:
        """Add an insert of outbox messages. `send` sets their ids."""
        for start in range(0, len(messages), MAX_BATCH_ROWS):
            chunk = messages[start : start + MAX_BATCH_ROWS]
            values = [[each.to, each.subject, dumps(each.facts), each.sent_at, each.due_at, 0, ""] for each in chunk]
            [(sql, params)] = insert_statements(Message, MESSAGE_COLUMNS, values)
            self.messages[len(self.statements)] = chunk
            self.run(f"{sql} RETURNING id", params)

    def append(self, batch: "StatementBatch") -> None:
        """Add the statements of another batch with the same placement."""
        first = len(self.statements)
        self.messages |= {first + position: messages for position, messages in batch.messages.items()}
        self.statements += batch.statements
        self.copies += batch.copies

    def append_with_payloads(self, batch: "StatementBatch") -> None:
        """Add the statements of another batch, with those for its payloads.

        Raises:
            PayloadsTooLarge: when payloads of that batch must be stored first.
        """
        batch.statements += batch.placement.statements()
        self.append(batch)

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
        if self.ends_transaction and not self.copies and supports_commit_in_batch():
            self._send_and_commit()
            return
        # One round trip instead of about six.
        results = execute_batch([(sql, params) for sql, params, _ in self.statements])
        for (_, _, expected), (count, _) in zip(self.statements, results, strict=True):
            if expected is not None and count != expected:
                raise StaleRow
        for copy in self.copies:
            _copy_rows(*copy)
        self._set_message_ids(results)

    def _send_and_commit(self) -> None:
        statements = [
            (sql if expected is None else REQUIRE_COUNT.format(sql=sql, expected=expected), params)
            for sql, params, expected in self.statements
        ]
        try:
            self._set_message_ids(execute_batch(statements, commits=True))
        except DataError as error:
            if getattr(error.__cause__, "sqlstate", "") == DIVISION_BY_ZERO:
                raise StaleRow from error
            raise

    def _set_message_ids(self, results: Sequence[StatementResult]) -> None:
        for position, messages in self.messages.items():
            for message, id in zip(messages, results[position].ids, strict=True):
                message.pk = id


def _copy_rows(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


MAX_STALE_ATTEMPTS = 5
"""Attempts that meet rows changed by another process before the request is refused as Busy."""
Result = TypeVar("Result")


def repeat_while_stale(attempt: Callable[[], Result], **subject: str) -> Result:
    """Call `attempt` until it meets no row that another process changed, and return its result.

    Raises:
        Busy: when each of MAX_STALE_ATTEMPTS attempts met such a row. `subject` names the object in the error.
    """
    faults = FaultTolerance()
    for _ in range(MAX_STALE_ATTEMPTS):
        try:
            return faults.repeat(attempt)
        except StaleRow:
            continue
    raise Busy(**subject)
