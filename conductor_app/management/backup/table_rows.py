"""Rows of tables as portable values: the same on SQLite and PostgreSQL. One row at a time is in memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from django.db import DataError, IntegrityError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from .archive_keys import KeyUses
from .archive_writer import MemberWriter
from .errors import BackupRefused
from .schema_state import ProductTable

ROW_OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_APPEND_NEWLINE


@contextmanager
def consistent_snapshot(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Read the database as of one moment in this block. Writers are not blocked."""
    if connection.vendor == "postgresql":
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            yield
        return
    with connection.cursor() as cursor:
        # Not `atomic`, which takes the lock of writers. The first read begins the snapshot of the log.
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def dump_rows(connection: BaseDatabaseWrapper, table: ProductTable, writer: MemberWriter, uses: KeyUses) -> int:
    """Write the rows of a table as lines of JSON. Returns their number."""
    sealed = [index for index, column in enumerate(table.columns) if column in table.sealed_columns]
    count = 0
    for row in read_rows(connection, table.name, table.columns):
        line = orjson.dumps(row, default=str, option=ROW_OPTIONS)
        for index in sealed:
            uses.count_in_column(row[index])
        uses.count_in_text(line)
        writer.write(line)
        count += 1
    return count


def read_rows(connection: BaseDatabaseWrapper, table: str, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield the values of these columns of each row."""
    query = f"SELECT {_names(connection, columns)} FROM {connection.ops.quote_name(table)}"
    with connection.cursor() as cursor, connection.wrap_database_errors:
        if connection.vendor != "postgresql":
            yield from cursor.execute(query)
            return
        cursor.execute(f"{query} LIMIT 0")
        types = [column.type_code for column in cursor.description]
        with cursor.copy(f"COPY ({query}) TO STDOUT") as copy:
            copy.set_types(types)
            yield from copy.rows()


def empty_tables(connection: BaseDatabaseWrapper, tables: Sequence[ProductTable]) -> None:
    """Delete the rows that migrations have inserted. Foreign keys are not checked."""
    names = [connection.ops.quote_name(table.name) for table in tables]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {', '.join(names)}")
            return
        for name in names:
            cursor.execute(f"DELETE FROM {name}")


def load_rows(
    connection: BaseDatabaseWrapper, table: ProductTable, columns: Sequence[str], rows: Iterable[list[Any]]
) -> int:
    """Insert rows into an empty table. Returns their number.

    Raises:
        BackupRefused: when the database does not accept one.
    """
    target = f"{connection.ops.quote_name(table.name)} ({_names(connection, columns)})"
    counted = _Counted(rows)
    try:
        with (
            transaction.atomic(using=connection.alias),
            connection.cursor() as cursor,
            # The methods of the database's own module, which are called here, raise its own errors.
            connection.wrap_database_errors,
        ):
            if connection.vendor == "postgresql":
                with cursor.copy(f"COPY {target} FROM STDIN") as copy:
                    for row in counted:
                        copy.write_row(row)
            else:
                _insert(cursor, target, _sqlite_rows(table, columns, counted))
    except (DataError, IntegrityError) as error:
        # The full text of the error would contain the row.
        reason = str(error).partition("\n")[0]
        raise BackupRefused(f"Row {counted.count:,} of {table.name} is refused by the database: {reason}") from error
    return counted.count


def _names(connection: BaseDatabaseWrapper, columns: Sequence[str]) -> str:
    return ", ".join(map(connection.ops.quote_name, columns))


class _Counted:
    def __init__(self, rows: Iterable[list[Any]]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[list[Any]]:
        for row in self._rows:
            self.count += 1
            yield row


def _sqlite_rows(table: ProductTable, columns: Sequence[str], rows: Iterable[list[Any]]) -> Iterator[list[Any]]:
    """Yield rows with times in the format of Django's SQLite backend."""
    times = [index for index, column in enumerate(columns) if column in table.time_columns]
    for row in rows:
        for index in times:
            if row[index] is not None:
                row[index] = row[index].replace("T", " ").removesuffix("+00:00")
        yield row


def _insert(cursor: Any, target: str, rows: Iterable[list[Any]]) -> None:
    iterator = iter(rows)
    for first in iterator:
        # The connection of the database's own module: Django's cursor would copy all rows into a list.
        places = ", ".join("?" * len(first))
        cursor.connection.executemany(f"INSERT INTO {target} VALUES ({places})", _chain(first, iterator))


def _chain(first: list[Any], rest: Iterator[list[Any]]) -> Iterator[list[Any]]:
    yield first
    yield from rest


def read_next_id(connection: BaseDatabaseWrapper, table: ProductTable) -> int | None:
    """Return the next value of the table's sequence, None if it has no sequence or has issued no value."""
    if table.id_column is None:
        return None
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            if (sequence := _sequence(cursor, connection, table)) is None:
                return None
            cursor.execute(f"SELECT last_value + 1 FROM {sequence} WHERE is_called")
        else:
            cursor.execute("SELECT seq + 1 FROM sqlite_sequence WHERE name = %s", [table.name])
        found = cursor.fetchone()
    return found[0] if found else None


def set_next_id(connection: BaseDatabaseWrapper, table: ProductTable, next_id: int | None) -> None:
    """Let the table's sequence continue with this value."""
    if table.id_column is None or next_id is None:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            if sequence := _sequence(cursor, connection, table):
                cursor.execute("SELECT setval(%s::regclass, %s, false)", [sequence, next_id])
        else:
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table.name])
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table.name, next_id - 1])


def _sequence(cursor: Any, connection: BaseDatabaseWrapper, table: ProductTable) -> str | None:
    quoted = connection.ops.quote_name(table.name)
    cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [quoted, table.id_column])
    sequence: str | None = cursor.fetchone()[0]
    return sequence
