"""Conversion of selections to the query language of the API."""

from collections.abc import Callable, Mapping
from typing import Any

from ...runs.search import RUNS


def to_query(selection: Mapping[str, Any]) -> str | None:
    """Return a selection as a query, or None if the query language does not support one of its filters."""
    parts = [QUERY_BUILDERS.get(name, _return_none)(value) for name, value in selection.items()]
    return " AND ".join(part for part in parts if part) if all(parts) else None


def _return_none(value: Any) -> None:
    return None


def _quote(text: Any) -> str | None:
    text = str(text)
    return None if "'" in text or "\\" in text or "*" in text else f"'{text}'"


def _equals_condition(field: str) -> Callable[[Any], str | None]:
    def build(value: Any) -> str | None:
        quoted = _quote(value)
        return quoted and f"{field} = {quoted}"

    return build


def _time_condition(field: str, operator: str) -> Callable[[int], str]:
    return lambda moment: f"{field} {operator} {moment}"


def _document_condition(condition: str) -> str | None:
    path, _, value = condition.partition("=")
    quoted = _quote(value.strip())
    return quoted and f"{path.strip()} = {quoted}"


def _reason_condition(text: str) -> str | None:
    quoted = _quote(text)
    return quoted and f"reasonForIncompletion = '*{text}*'"


QUERY_BUILDERS: dict[str, Callable[[Any], str | None]] = {
    "search": lambda term: f"({term})" if RUNS.is_query(term) else None,
    "ids": lambda ids: f"workflowId IN ({','.join(ids)})" if all(map(_quote, ids)) else None,
    "definition": _equals_condition("workflowType"),
    "version": lambda version: f"version = {version}",
    "status": lambda statuses: f"status IN ({','.join(statuses)})",
    "started_since": _time_condition("startTime", ">="),
    "started_before": _time_condition("startTime", "<"),
    "ended_since": _time_condition("endTime", ">="),
    "ended_before": _time_condition("endTime", "<"),
    "correlation_id": _equals_condition("correlationId"),
    "top_level": lambda answer: "parentWorkflowId IS NULL",
    "parent": _equals_condition("parentWorkflowId"),
    "started_by": _equals_condition("createdBy"),
    "idempotency_key": _equals_condition("idempotencyKey"),
    "error": _reason_condition,
    "inside": _document_condition,
}
