"""JDBC tasks: one SQL statement on a database in SQL_TASK_CONNECTIONS."""

import json
import math
import re
import sqlite3
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.types.json import Jsonb

from ..core.step_types.worker_tasks import JdbcStep
from ..settings import conf
from .cancellation import current_cancellation
from .network_guard import Deadline
from .registry import BuiltInWorker, WorkResult

SELECT, UPDATE = "SELECT", "UPDATE"
MAX_PARAMETERS = 10_000
EXACT_DIGITS = 15
"""The number of decimal digits that every JSON parser preserves."""
# Alternatives in order of precedence. Quoted text and comments contain no parameters. `??` is a question mark. An
# unclosed part extends to the end, so that no text is searched twice.
TOKENS = re.compile(
    r"""
    [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z)
    | '(?:[^']|'')*(?:'|\Z)
    | "(?:[^"]|"")*(?:"|\Z)
    | --[^\n]*
    | /\*.*?(?:\*/|\Z)
    | \$(?P<tag>(?:[A-Za-z_\x80-\uffff][\w\x80-\uffff]*)?)\$.*?(?:\$(?P=tag)\$|\Z)
    | [\w\x80-\uffff$]+
    | (?P<mark>\?\??)
    """,
    re.DOTALL | re.VERBOSE,
)
GRACE_SECONDS = 2.0
"""The time in which the server can cancel a statement before the connection is closed, in seconds."""
MAX_CONNECT_SECONDS = 10
STEPS_BETWEEN_CHECKS = 1000
# Statements cannot access other files or change the settings of this one.
FORBIDDEN_ACTIONS = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)
FAILURE = "The SQL statement failed:"


@dataclass(frozen=True)
class SqlLimits:
    seconds: float = 30
    max_rows: int = 10_000
    max_bytes: int = 5 << 20


@dataclass(frozen=True)
class JdbcSettings:
    """The databases by name, which the operator configures, and the limits of a statement."""

    connections: Mapping[str, str] = field(default_factory=dict)
    limits: SqlLimits = field(default_factory=SqlLimits)


def configured_connections() -> JdbcSettings:
    """Return this server's settings."""
    return JdbcSettings(conf.sql_task_connections)


class Jdbc(BuiltInWorker):
    """Executes a SELECT in a read-only transaction, or an UPDATE that requires its expected row count.

    Each task has its own connection, so that no session state outlives it.
    """

    type = JdbcStep.type

    def __init__(self, settings: Callable[[], JdbcSettings] = configured_connections) -> None:
        self._settings = settings

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Return the rows as `result`, or the number of changed rows as `update_count`.

        Error messages do not contain the address of the database.
        """
        settings = self._settings()
        try:
            statement = parse_statement(inputs)
            url = database_address(inputs, settings.connections)
            result = DATABASES[url.partition("://")[0]](url, statement, settings.limits)
        except InvalidStatement as error:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, f"{FAILURE} {error}")
        except StatementFailed as error:
            return WorkResult("FAILED", {}, f"{FAILURE} {error}")
        if statement.is_query:
            return WorkResult("COMPLETED", {"result": result})
        if statement.expected not in (None, result):
            reason = f"{FAILURE} it changed {result} rows instead of {statement.expected} and was rolled back."
            return WorkResult("FAILED", {"update_count": result}, reason)
        return WorkResult("COMPLETED", {"update_count": result})


def database_address(inputs: dict[str, Any], connections: Mapping[str, str]) -> str:
    """Return the address of the database that the input names."""
    name = inputs.get("connectionId") or inputs.get("integrationName")
    if not isinstance(name, str) or not name:
        raise InvalidStatement("connectionId is missing")
    if name not in connections:
        raise InvalidStatement(f"SQL_TASK_CONNECTIONS has no connection {name!r:.100}")
    return connections[name]


class InvalidStatement(Exception):
    """The input of the task does not describe a valid statement."""


class StatementFailed(Exception):
    """The database refused the statement. The message has the reason, but no part of the address."""


class ResultTooLarge(StatementFailed):
    """The result exceeds the limit of rows or bytes."""


@dataclass(frozen=True)
class Statement:
    """One statement. Its parameters are always bound, never inserted into the text."""

    text: str
    parameters: tuple[Any, ...]
    is_query: bool
    expected: int | None


def parse_statement(inputs: dict[str, Any]) -> Statement:
    """Return the statement in a task's input."""
    kind = str(inputs.get("type") or SELECT).upper()
    if kind not in (SELECT, UPDATE):
        raise InvalidStatement(f"type must be {SELECT} or {UPDATE}")
    return Statement(_parse_text(inputs), _parse_parameters(inputs), kind == SELECT, _parse_expected(inputs))


def _parse_text(inputs: dict[str, Any]) -> str:
    text = inputs.get("statement")
    if not isinstance(text, str) or not text.strip():
        raise InvalidStatement("statement is missing")
    if "\0" in text:
        raise InvalidStatement("the statement contains a NUL character")
    return text


def _parse_parameters(inputs: dict[str, Any]) -> tuple[Any, ...]:
    value = inputs.get("parameters")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidStatement("parameters must be a list, one value for each ? of the statement")
    if len(value) > MAX_PARAMETERS:
        raise InvalidStatement(f"a statement takes at most {MAX_PARAMETERS} parameters")
    return tuple(value)


def _parse_expected(inputs: dict[str, Any]) -> int | None:
    value = inputs.get("expectedUpdateCount")
    if value in (None, ""):
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidStatement("expectedUpdateCount must be a whole number") from None


def collect_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], limits: SqlLimits) -> list[dict[str, Any]]:
    """Return the rows as objects.

    Raises:
        ResultTooLarge: when they exceed a limit. Further rows are not read.
    """
    keys, result, size = distinct_names(names), [], 0
    for row in rows:
        result.append(dict(zip(keys, map(to_json_value, row), strict=True)))
        size += len(json.dumps(result[-1], ensure_ascii=False))
        if len(result) > limits.max_rows:
            raise ResultTooLarge(f"The result has more than {limits.max_rows} rows. Select fewer rows.")
        if size > limits.max_bytes:
            raise ResultTooLarge(f"The result is longer than {limits.max_bytes} bytes. Select less data.")
    return result


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names of the columns, with numbers appended to repeated names."""
    counts: Counter[str] = Counter()
    keys = []
    for name in names:
        counts[name] += 1
        keys.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return keys


def to_json_value(value: object) -> Any:
    """Return a value as JSON: times in ISO 8601, bytes in base64, and numbers that JSON cannot represent as text."""
    if value is None or isinstance(value, bool | str):
        return value.replace("\0", "") if isinstance(value, str) else value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float | Decimal):
        return to_json_number(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_value(inner) for inner in value]
    return str(value)


def to_json_number(value: float | Decimal) -> Any:
    """Return a number, as text if JSON cannot represent it."""
    if not math.isfinite(value):
        return str(value)
    if isinstance(value, float):
        return value
    if len(value.as_tuple().digits) > EXACT_DIGITS:
        return str(value)
    return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)


def replace_placeholders(text: str, count: int, format_placeholder: Callable[[int], str]) -> str:
    """Return the statement with each `?` replaced by the placeholder of its number, which starts with 1."""
    placeholder_count = 0

    def replacement(token: re.Match[str]) -> str:
        nonlocal placeholder_count
        if token["mark"] is None:
            return token[0]
        if token["mark"] == "??":
            return "?"
        placeholder_count += 1
        return format_placeholder(placeholder_count)

    written = TOKENS.sub(replacement, text)
    if placeholder_count != count:
        raise InvalidStatement(f"the statement has {placeholder_count} parameters (?), but {count} values are given")
    return written


def execute_on_postgresql(url: str, statement: Statement, limits: SqlLimits) -> list[dict[str, Any]] | int:
    """Return the rows of a SELECT, or the number of rows that an UPDATE changed.

    Raises:
        InvalidStatement: when the statement is invalid
        StatementFailed: when the database refuses it.
    """
    sql = replace_placeholders(statement.text, len(statement.parameters), lambda number: f"${number}")
    with (
        Deadline(limits.seconds + GRACE_SECONDS) as deadline,
        closing(_connect_to_postgresql(url, limits)) as connection,
        current_cancellation().stopping_by(lambda: connection.cancel_safe(timeout=GRACE_SECONDS)),
    ):
        # The server enforces `statement_timeout`. The deadline covers servers that no longer respond.
        deadline.watch(connection)
        try:
            return _run_on_postgresql(connection, sql, statement, limits)
        except psycopg.errors.QueryCanceled as error:
            raise StatementFailed(f"The statement took longer than {limits.seconds:g} s.") from error
        except psycopg.Error as error:
            message = error.diag.message_primary or "the connection was closed before the statement completed"
            raise StatementFailed(f"{message} ({error.sqlstate})" if error.sqlstate else message) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidStatement(f"a parameter cannot be bound: {error}") from error


def _connect_to_postgresql(url: str, limits: SqlLimits) -> psycopg.Connection:
    seconds = max(1, min(ceil(limits.seconds), MAX_CONNECT_SECONDS))
    try:
        connection = psycopg.connect(url, connect_timeout=seconds, application_name="conductor SQL task")
    except (psycopg.Error, ValueError) as error:
        # Connection errors of libpq contain hosts and users.
        raise StatementFailed("The database cannot be reached or refuses the login.") from error
    return connection


def _run_on_postgresql(
    connection: psycopg.Connection, sql: str, statement: Statement, limits: SqlLimits
) -> list[dict[str, Any]] | int:
    connection.execute("SELECT set_config('statement_timeout', %s, false)", [str(ceil(limits.seconds * 1000))])
    connection.commit()
    connection.read_only = statement.is_query
    parameters = [_adapt_for_postgresql(value) for value in statement.parameters]
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


def _adapt_for_postgresql(value: object) -> Any:
    return Jsonb(value, dumps=json.dumps) if isinstance(value, dict) else value


def execute_on_sqlite(url: str, statement: Statement, limits: SqlLimits) -> list[dict[str, Any]] | int:
    """Return the rows of a SELECT, or the number of rows that an UPDATE changed.

    Raises:
        InvalidStatement: when the statement is invalid
        StatementFailed: when the database refuses it.
    """
    sql = replace_placeholders(statement.text, len(statement.parameters), lambda number: "?")
    ends_at = monotonic() + limits.seconds
    try:
        with closing(_open_sqlite(url, statement.is_query, limits, ends_at)) as connection:
            return _run_on_sqlite(connection, sql, statement, limits)
    except sqlite3.ProgrammingError as error:
        raise InvalidStatement(str(error)) from error
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        if monotonic() >= ends_at:
            raise StatementFailed(f"The statement took longer than {limits.seconds:g} s.") from error
        raise StatementFailed(str(error)) from error


def _open_sqlite(url: str, is_query: bool, limits: SqlLimits, ends_at: float) -> sqlite3.Connection:
    path = Path(url.partition("://")[2])
    mode = "ro" if is_query else "rw"
    address = f"file:{quote(str(path))}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=limits.seconds, isolation_level=None)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.max_bytes)
    cancellation = current_cancellation()
    connection.set_progress_handler(lambda: cancellation.is_canceled or monotonic() >= ends_at, STEPS_BETWEEN_CHECKS)
    connection.set_authorizer(_authorize)
    return connection


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action in FORBIDDEN_ACTIONS else sqlite3.SQLITE_OK


def _run_on_sqlite(
    connection: sqlite3.Connection, sql: str, statement: Statement, limits: SqlLimits
) -> list[dict[str, Any]] | int:
    connection.execute("BEGIN" if statement.is_query else "BEGIN IMMEDIATE")
    cursor = connection.execute(sql, [_adapt_for_sqlite(value) for value in statement.parameters])
    if statement.is_query:
        if cursor.description is None:
            raise InvalidStatement("the statement has the type SELECT but returns no rows")
        return collect_rows([column[0] for column in cursor.description], cursor, limits)
    count = max(cursor.rowcount, 0)
    if statement.expected in (None, count):
        connection.execute("COMMIT")
    return count


def _adapt_for_sqlite(value: object) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


DATABASES = {
    "postgresql": execute_on_postgresql,
    "postgres": execute_on_postgresql,
    "sqlite": execute_on_sqlite,
}
