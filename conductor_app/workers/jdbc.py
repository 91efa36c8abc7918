"""JDBC tasks: one SQL statement on a database in SQL_TASK_CONNECTIONS."""

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
    """Return the address of the database that the input names.

    Raises:
        InvalidStatement: when the name is missing or unknown.
    """
    name = inputs.get("connectionId") or inputs.get("integrationName")
    if not isinstance(name, str) or not name:
        raise InvalidStatement("connectionId is missing")
    if name not in connections:
        raise InvalidStatement(f"SQL_TASK_CONNECTIONS has no connection {name!r:.100}")
    return connections[name]
