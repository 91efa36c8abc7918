"""Execute statements on PostgreSQL."""

import json
from contextlib import closing
from itertools import chain
from math import ceil
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from conductor_app.workers.socket_deadline import Deadline
from conductor_app.workers.sql.placeholders import replace_placeholders
from conductor_app.workers.sql.statement import InvalidStatement, SqlLimits, Statement, StatementFailed
from conductor_app.workers.sql.values import collect_rows

GRACE_SECONDS = 2.0
"""The time in which the server can cancel a statement before the connection is closed, in seconds."""
MAX_CONNECT_SECONDS = 10


def execute_statement(url: str, statement: Statement, limits: SqlLimits) -> list[dict[str, Any]] | int:
    """Return the rows of a SELECT, or the number of rows that an UPDATE changed.

    Raises:
        InvalidStatement: when the statement is invalid
        StatementFailed: when the database refuses it.
    """
    sql = replace_placeholders(statement.text, len(statement.parameters), lambda number: f"${number}")
    with Deadline(limits.seconds + GRACE_SECONDS) as deadline, closing(_connect(url, limits)) as connection:
        # The server enforces `statement_timeout`. The deadline covers servers that no longer respond.
        deadline.watch(connection)
        try:
            return _execute(connection, sql, statement, limits)
        except psycopg.errors.QueryCanceled as error:
            raise StatementFailed(f"The statement took longer than {limits.seconds:g} s.") from error
        except psycopg.Error as error:
            message = error.diag.message_primary or "the connection was closed before the statement completed"
            raise StatementFailed(f"{message} ({error.sqlstate})" if error.sqlstate else message) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidStatement(f"a parameter cannot be bound: {error}") from error


def _connect(url: str, limits: SqlLimits) -> psycopg.Connection:
    seconds = max(1, min(ceil(limits.seconds), MAX_CONNECT_SECONDS))
    try:
        connection = psycopg.connect(url, connect_timeout=seconds, application_name="conductor SQL task")
    except (psycopg.Error, ValueError) as error:
        # Connection errors of libpq contain hosts and users.
        raise StatementFailed("The database cannot be reached or refuses the login.") from error
    return connection


def _execute(
    connection: psycopg.Connection, sql: str, statement: Statement, limits: SqlLimits
) -> list[dict[str, Any]] | int:
    connection.execute("SELECT set_config('statement_timeout', %s, false)", [str(ceil(limits.seconds * 1000))])
    connection.commit()
    connection.read_only = statement.is_query
    parameters = [_adapt_parameter(value) for value in statement.parameters]
    with psycopg.RawCursor(connection) as cursor:
        if statement.is_query:
            return _fetch_rows(cursor, sql, parameters, limits)
        # Only a prepared statement makes the server refuse a second statement in the same text.
        cursor.execute(sql, parameters, prepare=True)
        count = max(cursor.rowcount, 0)
    if statement.expected in (None, count):
        connection.commit()
    return count


def _fetch_rows(cursor: psycopg.RawCursor, sql: str, parameters: list[Any], limits: SqlLimits) -> list[dict[str, Any]]:
    """Return the rows of a query, read one by one up to the limit. Streaming permits only a single statement."""
    # `stream` is a generator function, although its annotation is Iterator.
    with closing(cursor.stream(sql, parameters)) as rows:  # type: ignore[type-var]  # see above
        first = next(rows, None)
        if first is None:
            return []
        names = [column.name for column in cursor.description or ()]
        return collect_rows(names, chain([first], rows), limits)


def _adapt_parameter(value: Any) -> Any:
    return Jsonb(value, dumps=json.dumps) if isinstance(value, dict) else value
