"""A selection in the query language of the API, as far as that can say it."""

from collections.abc import Callable, Mapping
from typing import Any

from ..search import RUNS


def to_query(selection: Mapping[str, Any]) -> str | None:
    """The same runs as a query; None where the API has no words for a part of it."""
    said = [SPELLED.get(name, _unsaid)(value) for name, value in selection.items()]
    return " AND ".join(part for part in said if part) if all(said) else None


def _unsaid(value: Any) -> None:
    return None


def _quote(text: Any) -> str | None:
    text = str(text)
    return None if "'" in text or "\\" in text or "*" in text else f"'{text}'"


def _is(field: str) -> Callable[[Any], str | None]:
    def spelled(value: Any) -> str | None:
        quoted = _quote(value)
        return quoted and f"{field} = {quoted}"

    return spelled


def _moment(field: str, operator: str) -> Callable[[int], str]:
    return lambda moment: f"{field} {operator} {moment}"


def _inside(said: str) -> str | None:
    path, _, value = said.partition("=")
    quoted = _quote(value.strip())
    return quoted and f"{path.strip()} = {quoted}"


def _error(text: str) -> str | None:
    quoted = _quote(text)
    return quoted and f"reasonForIncompletion = '*{text}*'"


SPELLED: dict[str, Callable[[Any], str | None]] = {
    "search": lambda term: f"({term})" if RUNS.speaks(term) else None,
    "ids": lambda ids: f"workflowId IN ({','.join(ids)})" if all(map(_quote, ids)) else None,
    "definition": _is("workflowType"),
    "version": lambda version: f"version = {version}",
    "status": lambda statuses: f"status IN ({','.join(statuses)})",
    "started_since": _moment("startTime", ">="),
    "started_before": _moment("startTime", "<"),
    "ended_since": _moment("endTime", ">="),
    "ended_before": _moment("endTime", "<"),
    "correlation_id": _is("correlationId"),
    "parent": _is("parentWorkflowId"),
    "started_by": _is("createdBy"),
    "idempotency_key": _is("idempotencyKey"),
    "error": _error,
    "inside": _inside,
}
