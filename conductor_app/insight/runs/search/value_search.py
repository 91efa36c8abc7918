"""Search for a value whose path is unknown, and suggestions for a path that no recent run has."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from django.db.models import QuerySet

from ....core.errors import Invalid
from ....models import Run
from ....models.fields import dumps
from .document_conditions import parse_document_path
from .query_parser import Clause, Condition, Not, parse_query
from .run_fields import RUNS

DOCUMENTS = ("input", "output", "variables")
RECENT_RUNS, MAX_DOCUMENT_BYTES, MAX_PATHS = 50, 16_000, 2_000
"""Limits of a suggestion: the newest runs that are read, the size of a document, and the paths that are compared."""


def query_for_value(value: str) -> str:
    """Return a query for runs whose input contains a value at any path. Inputs are stored as JSON."""
    escaped = (dumps(value) or "")[1:-1].replace("\\", "\\\\").replace('"', '\\"')
    return f'input = "*{escaped}*"'


def suggest_query(query: str, runs: QuerySet[Run]) -> tuple[str, str, str] | None:
    """Return the path of a query that none of the newest runs has, the most similar path, and the query with that path.

    None if the runs have the path, or no similar one. Runs one query, or none without a path.
    """
    for clause in _document_clauses(query):
        column = clause.field.replace("[", ".").split(".")[0].lower()
        known = dict.fromkeys(_paths_of_documents(column, runs))
        if not known or clause.field in known or _without_positions(clause.field) in known:
            return None
        for similar in get_close_matches(clause.field, list(known), n=1, cutoff=0.7):
            end = clause.position + len(clause.field)
            return clause.field, similar, f"{query[: clause.position]}{similar}{query[end:]}"
        return None
    return None


def _document_clauses(query: str) -> Iterator[Clause]:
    """Yield the comparisons of a query with a value at a path of a document."""
    try:
        condition = parse_query(query) if RUNS.is_query(query) else None
    except Invalid:
        return
    for clause in _clauses(condition) if condition else ():
        column = clause.field.replace("[", ".").split(".")[0]
        if column.lower() in DOCUMENTS and parse_document_path(clause.field[len(column) :]):
            yield clause


def _clauses(condition: Condition) -> Iterator[Clause]:
    if isinstance(condition, Clause):
        yield condition
    elif isinstance(condition, Not):
        yield from _clauses(condition.part)
    else:
        for part in condition.parts:
            yield from _clauses(part)


def _paths_of_documents(column: str, runs: QuerySet[Run]) -> list[str]:
    small = runs.filter(**{f"{column}_size__lte": MAX_DOCUMENT_BYTES}).order_by("-created_at")
    paths: list[str] = []
    for document in small.values_list(column, flat=True)[:RECENT_RUNS]:
        paths += _paths(document, column)
        if len(paths) > MAX_PATHS:
            break
    return paths


def _paths(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of a value and of the values below it. The first item of a list stands for all."""
    yield path
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _paths(inner, f"{path}.{name}")
    elif isinstance(value, list) and value:
        yield from _paths(value[0], f"{path}[0]")


def _without_positions(path: str) -> str:
    """Return a path with the position 0 in place of each position."""
    parts = parse_document_path(f".{path}")
    return "".join("[0]" if isinstance(part, int) else f".{part}" for part in parts)[1:]
