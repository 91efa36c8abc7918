"""Send any number of statements to PostgreSQL in one round trip, through libpq.

Cursors and psycopg's own pipeline would take a sixth of the Python time of a report, during which the other threads of
a web process cannot run.
"""

import select
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import count
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import Connection, DataError, OperationalError, capabilities
from psycopg.adapt import Transformer
from psycopg.errors import DuplicatePreparedStatement, FeatureNotSupported, InvalidSqlStatementName, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from ..settings import conf
from .database import alias

Statement = tuple[str, Sequence[Any]]
EncodedStatement = tuple[str, list[bytes | None]]
OUTDATED_ERRORS = (FeatureNotSupported, InvalidSqlStatementName, DuplicatePreparedStatement)
"""Errors of a statement that was prepared before the columns of a table changed, or in another session."""
COMMIT: Statement = ("COMMIT", ())
RETURNING_ID = "RETURNING id"
MAX_PREPARED_PARAMS = 500
"""The maximum number of parameters of a prepared statement: each takes 400 bytes of the server, and larger statements
rarely repeat."""
MAX_SILENCE_MS = 90_000
"""The maximum wait for the server's next bytes. It exceeds the default of `DATABASE_STATEMENT_SECONDS`, so it is only
reached if the server is stopped or the network drops packets."""
_statement_numbers = count()


def execute_batch(statements: Sequence[Statement]) -> list[tuple[int, list[int]]]:
    """Execute the statements in order. Returns the number of rows that each changed, and the ids that it returned."""
    return _changes(statements, _send_statements(statements, connections[alias()]))


def commit_batch(
    statements: Sequence[Statement], queries: Sequence[Statement]
) -> tuple[list[tuple[int, list[int]]], list[list[tuple[Any, ...]]]]:
    """Execute the statements in order, then the queries, and commit, unless one of them fails.

    Returns the results of `execute_batch`, and all rows of each query.
    """
    database = connections[alias()]
    results = _send_statements([*statements, *queries, COMMIT], database)
    reader = Transformer(database.connection)
    rows = [_load_rows(reader, result) for result in results[len(statements) : -1]]
    return _changes(statements, results), rows


def _changes(statements: Sequence[Statement], results: Sequence[PGresult]) -> list[tuple[int, list[int]]]:
    return [
        (result.command_tuples or 0, _returned_ids(result) if sql.endswith(RETURNING_ID) else [])
        for (sql, _), result in zip(statements, results, strict=False)
    ]


def _returned_ids(result: PGresult) -> list[int]:
    return [int(result.get_value(row, 0) or 0) for row in range(result.ntuples)]


def fetch(sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    [rows] = fetch_together([(sql, params)])
    return rows


def fetch_together(queries: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
    """Return all rows of each query."""
    database = connections[alias()]
    results = _send_statements(queries, database)
    reader = Transformer(database.connection)
    return [_load_rows(reader, result) for result in results]


def _load_rows(reader: Any, result: PGresult) -> list[tuple[Any, ...]]:
    reader.set_pgresult(result)
    return reader.load_rows(0, result.ntuples, tuple)


def _send_statements(statements: Sequence[Statement], database: BaseDatabaseWrapper) -> list[PGresult]:
    database.ensure_connection()
    with database.wrap_database_errors:
        psycopg_connection = database.connection
        encoded = [(sql, _encode_parameters(params)) for sql, params in statements]
        is_first = psycopg_connection.pgconn.transaction_status == TransactionStatus.IDLE
        try:
            return _read_results(database, encoded)
        except OUTDATED_ERRORS:
            discard_prepared(psycopg_connection)
            if not is_first:
                raise
            # These statements began the transaction, so nothing is lost.
            psycopg_connection.rollback()
            return _read_results(database, encoded)


def _read_results(database: BaseDatabaseWrapper, statements: Sequence[EncodedStatement]) -> list[PGresult]:
    psycopg_connection = database.connection
    try:
        psycopg_connection.pgconn.enter_pipeline_mode()
        exchange = _PipelineExchange(psycopg_connection)
        for sql, params in statements:
            exchange.add_statement(sql, params)
        results = exchange.results()
        psycopg_connection.pgconn.exit_pipeline_mode()
    except BaseException:
        # Sent statements cannot be revoked: a later statement would receive their results.
        psycopg_connection.close()
        if not database.in_atomic_block:
            database.close()
        raise
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            exchange.discard_prepared()
            raise error_from_result(result)
    return [results[position] for position in exchange.result_positions]


class _PipelineExchange:
    """One exchange with the server, which sends all statements before it reads the results."""

    def __init__(self, psycopg_connection: Connection) -> None:
        self.server: PGconn = psycopg_connection.pgconn
        self.names = prepared_names(psycopg_connection)
        self.max_prepared = psycopg_connection.prepared_max
        self.max_prepared_params = MAX_PREPARED_PARAMS if conf.sql_prepared else -1
        self.result_positions: list[int] = []
        self.new: list[tuple[bytes, tuple[Any, ...]]] = []
        self.sent_count = 0
        closings = pending_closings(psycopg_connection)
        while closings:
            self._close(closings.popleft())
        if not psycopg_connection.autocommit and self.server.transaction_status == TransactionStatus.IDLE:
            self._command(begin_command(psycopg_connection))

    def add_statement(self, sql: str, params: list[bytes | None]) -> None:
        """Send a statement and append the position of its result to `result_positions`."""
        if len(params) > self.max_prepared_params:
            self.server.send_query_params(_number_parameters(sql), params)
        else:
            self.server.send_query_prepared(self._prepare(sql), params)
        self.result_positions.append(self.sent_count)
        self.sent_count += 1

    def results(self) -> list[PGresult]:
        """Return the results. Other threads run while this one waits.

        Raises:
            OperationalError: when the connection is lost.
        """
        self.server.pipeline_sync()
        ready = select.poll()
        ready.register(self.server.socket, select.POLLIN | select.POLLOUT)
        while self.server.flush():
            _wait_for_server(ready)
            self.server.consume_input()
        ready.modify(self.server.socket, select.POLLIN)
        results: list[PGresult] = []
        # The last result only marks the end of the pipeline. The error of a failed commit precedes it.
        while not results or results[-1].status != ExecStatus.PIPELINE_SYNC:
            while self.server.is_busy():
                _wait_for_server(ready)
                self.server.consume_input()
            result = self.server.get_result()
            if result is not None:
                results.append(result)
            elif self.server.status != ConnStatus.OK:
                raise OperationalError("The connection to PostgreSQL was lost.")
        return results[:-1]

    def _prepare(self, sql: str) -> bytes:
        key = (text := _number_parameters_cached(sql), ())
        if name := self.names.get(key):
            self.names.move_to_end(key)
            return name
        if self.names and self.max_prepared is not None and len(self.names) >= self.max_prepared:
            self._close(self.names.popitem(last=False)[1])
        name = self.names[key] = b"conductor_%d" % next(_statement_numbers)
        self.new.append(key)
        self.server.send_prepare(name, text)
        self.sent_count += 1
        return name

    def discard_prepared(self) -> None:
        """Discard the names of new statements, which the server may not have prepared because of an error."""
        for key in self.new:
            self.names.pop(key, None)

    def _close(self, name: bytes | None) -> None:
        """Deallocate a prepared statement on the server; None deallocates all."""
        if name is None or not capabilities.has_send_close_prepared():
            self._command(b"DEALLOCATE " + (name or b"ALL"))
        else:
            # Unlike DEALLOCATE, connection poolers support this message.
            self.server.send_close_prepared(name)
            self.sent_count += 1

    def _command(self, sql: bytes) -> None:
        self.server.send_query_params(sql, None)
        self.sent_count += 1


def _wait_for_server(ready: select.poll) -> None:
    if not ready.poll(MAX_SILENCE_MS):
        raise OperationalError(f"PostgreSQL has not responded for {MAX_SILENCE_MS // 1000} s.")


def _number_parameters(sql: str) -> bytes:
    """Return the statement with numbered parameters, as the server expects them."""
    first, *parts = sql.split("%s")
    return "".join([first, *(f"${number}{text}" for number, text in enumerate(parts, 1))]).encode()


_number_parameters_cached = lru_cache(2000)(_number_parameters)


def _encode_parameters(params: Sequence[Any]) -> list[bytes | None]:
    """Return the parameters as text; the server knows their types."""
    try:
        return [ENCODERS[type(value)](value) for value in params]
    except UnicodeEncodeError as error:
        raise DataError("PostgreSQL cannot store a lone surrogate in a text.") from error


def _encode_text(value: str) -> bytes:
    if "\0" in value:
        raise DataError("PostgreSQL cannot store NUL in a text.")
    return value.encode()


class EncodersByType(dict[type, Callable[[Any], bytes | None]]):
    """The encoder of each parameter type. A task has more than a hundred parameters."""

    def __missing__(self, kind: type) -> Callable[[Any], bytes | None]:
        for base in kind.__mro__:
            if base in self:
                return self[base]
        raise TypeError(f"Unsupported parameter type {kind.__name__}.")


ENCODERS = EncodersByType(
    {
        str: _encode_text,
        int: b"%d".__mod__,
        bool: {True: b"t", False: b"f"}.__getitem__,
        float: lambda value: repr(value).encode(),
        type(None): lambda value: None,
    }
)


PreparedNames = OrderedDict[tuple[bytes, tuple[Any, ...]], bytes]


@cache
def is_supported() -> bool:
    """Return True if this version of psycopg has the private attributes that the functions below use.

    Otherwise, statements go through ordinary cursors.
    """
    from psycopg._preparing import PrepareManager

    manager = PrepareManager()
    return (
        isinstance(getattr(manager, "_names", None), OrderedDict)
        and isinstance(getattr(manager, "_to_flush", None), deque)
        and callable(getattr(manager, "clear", None))
        and callable(getattr(Connection, "_get_tx_start_command", None))
    )


def prepared_names(connection: Connection[Any]) -> PreparedNames:
    """Return the statements that psycopg has prepared on a connection, least recently used first.

    psycopg clears them, here and on the server, when it rolls a transaction back.
    """
    return connection._prepared._names


def pending_closings(connection: Connection[Any]) -> deque[bytes | None]:
    """Return the names of prepared statements that the server must still deallocate. None means all."""
    return connection._prepared._to_flush


def discard_prepared(connection: Connection[Any]) -> None:
    """Discard all prepared statements of a connection, so that psycopg prepares them again."""
    connection._prepared.clear()


def begin_command(connection: Connection[Any]) -> bytes:
    """Return the statement that begins a transaction on the connection."""
    return connection._get_tx_start_command()
