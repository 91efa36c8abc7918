"""JDBC tasks: one SQL statement on a database that the operator has named in SQL_TASK_CONNECTIONS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conductor_app import conf
from conductor_app.workers.sql import postgresql, sqlite
from conductor_app.workers.sql.statement import BadStatement, SqlLimits, StatementFailed, parse_statement
from conductor_app.workers.worker import BuiltInWorker, WorkResult

FAILURE = "The SQL statement failed:"
DATABASES = {"postgresql": postgresql.perform, "postgres": postgresql.perform, "sqlite": sqlite.perform}


@dataclass(frozen=True)
class Site:
    """What the operator has set: the databases by name, and the limits."""

    connections: Mapping[str, str] = field(default_factory=dict)
    limits: SqlLimits = field(default_factory=SqlLimits)


def configured_connections() -> Site:
    """What this server's settings say."""
    limits = SqlLimits(conf.sql_task_seconds, conf.sql_task_max_rows, conf.sql_task_max_bytes)
    return Site(conf.sql_task_connections, limits)


class Jdbc(BuiltInWorker):
    """Reads in a read-only transaction, or changes rows in one that is taken back if their number is not as expected.

    Each task has a connection of its own: nothing that a statement sets outlives it.
    """

    type = "JDBC"

    def __init__(self, site: Callable[[], Site] = configured_connections) -> None:
        self._site = site

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """The rows as `result`, or their number as `update_count`; no reason holds the address of the database."""
        site = self._site()
        try:
            statement = parse_statement(inputs)
            url = address(inputs, site.connections)
            came = DATABASES[url.partition("://")[0]](url, statement, site.limits)
        except BadStatement as error:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, f"{FAILURE} {error}")
        except StatementFailed as error:
            return WorkResult("FAILED", {}, f"{FAILURE} {error}")
        if statement.reads:
            return WorkResult("COMPLETED", {"result": came})
        if statement.expected not in (None, came):
            reason = f"{FAILURE} it changed {came} rows where {statement.expected} were expected; it was taken back."
            return WorkResult("FAILED", {"update_count": came}, reason)
        return WorkResult("COMPLETED", {"update_count": came})


def address(inputs: dict[str, Any], connections: Mapping[str, str]) -> str:
    """The address of the database that the input names; raises BadStatement."""
    name = inputs.get("connectionId") or inputs.get("integrationName")
    if not isinstance(name, str) or not name:
        raise BadStatement("the input names no connection: write one in 'connectionId'")
    if name not in connections:
        raise BadStatement(f"SQL_TASK_CONNECTIONS names no connection {name!r:.100}")
    return connections[name]
