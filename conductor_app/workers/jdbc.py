"""JDBC tasks: one SQL statement on a database that the operator has named in SQL_TASK_CONNECTIONS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conductor_app import conf
from conductor_app.core.step_types.jdbc import JdbcStep
from conductor_app.workers.sql import postgresql, sqlite
from conductor_app.workers.sql.statement import InvalidStatement, SqlLimits, StatementFailed, parse_statement
from conductor_app.workers.worker import BuiltInWorker, WorkResult

FAILURE = "The SQL statement failed:"
DATABASES = {
    "postgresql": postgresql.execute_statement,
    "postgres": postgresql.execute_statement,
    "sqlite": sqlite.execute_statement,
}


@dataclass(frozen=True)
class JdbcSettings:
    """Databases by name and limits, set by the operator."""

    connections: Mapping[str, str] = field(default_factory=dict)
    limits: SqlLimits = field(default_factory=SqlLimits)


def configured_connections() -> JdbcSettings:
    """Return this server's settings."""
    limits = SqlLimits(conf.sql_task_seconds, conf.sql_task_max_rows, conf.sql_task_max_bytes)
    return JdbcSettings(conf.sql_task_connections, limits)


class Jdbc(BuiltInWorker):
    """Executes a SELECT in a read-only transaction, or an UPDATE that requires its expected row count.

    Each task has a connection of its own, so that no session state outlives it.
    """

    type = JdbcStep.type

    def __init__(self, site: Callable[[], JdbcSettings] = configured_connections) -> None:
        self._settings = site

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Return the rows as `result`, or their number as `update_count`.

        Error messages do not contain the database's address.
        """
        site = self._settings()
        try:
            statement = parse_statement(inputs)
            url = database_address(inputs, site.connections)
            came = DATABASES[url.partition("://")[0]](url, statement, site.limits)
        except InvalidStatement as error:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, f"{FAILURE} {error}")
        except StatementFailed as error:
            return WorkResult("FAILED", {}, f"{FAILURE} {error}")
        if statement.is_query:
            return WorkResult("COMPLETED", {"result": came})
        if statement.expected not in (None, came):
            reason = f"{FAILURE} it changed {came} rows where {statement.expected} were expected; it was taken back."
            return WorkResult("FAILED", {"update_count": came}, reason)
        return WorkResult("COMPLETED", {"update_count": came})


def database_address(inputs: dict[str, Any], connections: Mapping[str, str]) -> str:
    """Return the address of the database that the input names.

    Raises:
        InvalidStatement: when it names none, or an unknown one.
    """
    name = inputs.get("connectionId") or inputs.get("integrationName")
    if not isinstance(name, str) or not name:
        raise InvalidStatement("the input names no connection: write one in 'connectionId'")
    if name not in connections:
        raise InvalidStatement(f"SQL_TASK_CONNECTIONS names no connection {name!r:.100}")
    return connections[name]
