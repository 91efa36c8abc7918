"""The query language of the scheduler: clauses joined by AND that filter schedule executions (api §6.4)."""

import re
from collections.abc import Mapping

from django.db.models import Q, QuerySet

from ....core.errors import Invalid
from ....models import ScheduleExecution
from ..query_parameters import parse_integer

CLAUSE_PATTERN = re.compile(r"\s*(\w+)\s*(=|<|>|\bIN\b)\s*(.*?)\s*", re.DOTALL)
TEXT_COLUMNS = {"scheduleName": "schedule_name", "state": "state", "workflowName": "workflow_name", "executionId": "id"}
TIME_COLUMNS = {"scheduledTime": "slot_at", "executionTime": "executed_at"}
MAX_CLAUSES = 50


def find_executions(query: str) -> QuerySet[ScheduleExecution]:
    """Return the executions that match a query.

    Raises:
        Invalid: when the query has too many clauses.
    """
    clauses = [clause for clause in query.split(" AND ") if clause.strip()]
    if len(clauses) > MAX_CLAUSES:
        raise Invalid(f"A query may have at most {MAX_CLAUSES} clauses.")
    found = ScheduleExecution.objects.all()
    for clause in clauses:
        found = found.filter(_parse_clause(clause.strip()))
    return found


def _parse_clause(clause: str) -> Q:
    match = CLAUSE_PATTERN.fullmatch(clause)
    if match and match[1] in TIME_COLUMNS:
        return _time_condition(TIME_COLUMNS[match[1]], match[2], match[3])
    if match and match[1] in TEXT_COLUMNS and match[2] in ("=", "IN"):
        return _text_condition(
            TEXT_COLUMNS[match[1]], [word for word in re.sub("[\"'()]", "", match[3]).split(",") if word]
        )
    # A text that is no clause is the name of a schedule.
    return Q(schedule_name=clause)


def _text_condition(column: str, words: list[str]) -> Q:
    words = [word.strip() for word in words]
    if column == "workflow_name" and len(words) == 1:
        return Q(workflow_name__icontains=words[0].replace("*", ""))
    return Q(**{f"{column}__in": words})


def _time_condition(column: str, operator: str, value: str) -> Q:
    if operator == "IN":
        raise Invalid("Times must be compared with <, > or =.")
    time = parse_integer(value.strip("\"'() "), "A moment in the query", 64)
    return Q(**{column + {"<": "__lt", ">": "__gt", "=": ""}[operator]: time})


def order_rows(rows: QuerySet, sort: str, columns: Mapping[str, str], default_order: tuple[str, ...]) -> QuerySet:
    """Sort rows by a list such as `scheduledTime:DESC,state:ASC`. Unknown columns are ignored."""
    requested = [each.strip().partition(":") for each in re.split("[,|]", sort)]
    known = [
        ("-" if direction.upper() == "DESC" else "") + columns[name]
        for name, _, direction in requested
        if name in columns and direction.upper() in ("ASC", "DESC")
    ]
    return rows.order_by(*(known or default_order), "pk")
