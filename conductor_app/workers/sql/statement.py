"""Parse the SQL statement in the input of a task."""

from dataclasses import dataclass
from typing import Any

SELECT, UPDATE = "SELECT", "UPDATE"
MAX_PARAMETERS = 10_000


class InvalidStatement(Exception):
    """The input of the task does not describe a valid statement."""


class StatementFailed(Exception):
    """The database refused the statement. The message has the reason, but no part of the address."""


class ResultTooLarge(StatementFailed):
    """The result exceeds the limit of rows or bytes."""


@dataclass(frozen=True)
class SqlLimits:
    """Limits of a statement of a SQL task."""

    seconds: float = 30
    max_rows: int = 10_000
    max_bytes: int = 5 << 20


@dataclass(frozen=True)
class Statement:
    """One statement. Its parameters are always bound, never inserted into the text."""

    text: str
    parameters: tuple[Any, ...]
    is_query: bool
    expected: int | None


def parse_statement(inputs: dict[str, Any]) -> Statement:
    """Return the statement in a task's input.

    Raises:
        InvalidStatement: when it is invalid.
    """
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
