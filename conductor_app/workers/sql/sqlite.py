"""Execute statements on a SQLite file."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from conductor_app.workers.sql.placeholders import replace_placeholders
from conductor_app.workers.sql.statement import InvalidStatement, SqlLimits, Statement, StatementFailed
from conductor_app.workers.sql.values import collect_rows

STEPS_BETWEEN_CHECKS = 1000
# Statements cannot access other files or change the settings of this one.
FORBIDDEN_ACTIONS = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)


def execute_statement(url: str, statement: Statement, limits: SqlLimits) -> list[dict[str, Any]] | int:
    """Return the rows of a SELECT, or the number of rows that an UPDATE changed.

    Raises:
        InvalidStatement: when the statement is invalid
        StatementFailed: when the database refuses it.
    """
    sql = replace_placeholders(statement.text, len(statement.parameters), lambda number: "?")
    ends_at = monotonic() + limits.seconds
    try:
        with closing(_open(url, statement.is_query, limits, ends_at)) as connection:
            return _execute(connection, sql, statement, limits)
    except sqlite3.ProgrammingError as error:
        raise InvalidStatement(str(error)) from error
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        if monotonic() >= ends_at:
            raise StatementFailed(f"The statement took longer than {limits.seconds:g} s.") from error
        raise StatementFailed(str(error)) from error


def _open(url: str, is_query: bool, limits: SqlLimits, ends_at: float) -> sqlite3.Connection:
    path = Path(url.partition("://")[2])
    mode = "ro" if is_query else "rw"
    address = f"file:{quote(str(path))}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=limits.seconds, isolation_level=None)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.max_bytes)
    connection.set_progress_handler(lambda: monotonic() >= ends_at, STEPS_BETWEEN_CHECKS)
    connection.set_authorizer(_authorize)
    return connection


def _authorize(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_DENY if action in FORBIDDEN_ACTIONS else sqlite3.SQLITE_OK


def _execute(
    connection: sqlite3.Connection, sql: str, statement: Statement, limits: SqlLimits
) -> list[dict[str, Any]] | int:
    connection.execute("BEGIN" if statement.is_query else "BEGIN IMMEDIATE")
    cursor = connection.execute(sql, [_adapt_parameter(value) for value in statement.parameters])
    if statement.is_query:
        if cursor.description is None:
            raise InvalidStatement("the statement has the type SELECT but returns no rows")
        return collect_rows([column[0] for column in cursor.description], cursor, limits)
    count = max(cursor.rowcount, 0)
    if statement.expected in (None, count):
        connection.execute("COMMIT")
    return count


def _adapt_parameter(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
