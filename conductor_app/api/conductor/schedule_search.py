"""The search language of the scheduler: clauses joined by AND, filters on what schedules came to (api §6.4)."""

import re
from collections.abc import Mapping

from django.db.models import Q, QuerySet

from ...core.errors import Invalid
from ...models import ScheduleExecution
from .query_parameters import parse_integer

CLAUSE = re.compile(r"\s*(\w+)\s*(=|<|>|\bIN\b)\s*(.*?)\s*", re.DOTALL)
FIELDS = {"scheduleName": "schedule_name", "state": "state", "workflowName": "workflow_name", "executionId": "id"}
MOMENTS = {"scheduledTime": "slot_at", "executionTime": "executed_at"}
MOST_CLAUSES = 50


def find_executions(query: str) -> QuerySet[ScheduleExecution]:
    """The executions that a query asks for; raises Invalid."""
    clauses = [clause for clause in query.split(" AND ") if clause.strip()]
    if len(clauses) > MOST_CLAUSES:
        raise Invalid(f"A query may have at most {MOST_CLAUSES} clauses.")
    found = ScheduleExecution.objects.all()
    for clause in clauses:
        found = found.filter(_condition(clause.strip()))
    return found


def _condition(clause: str) -> Q:
    parts = CLAUSE.fullmatch(clause)
    if parts and parts[1] in MOMENTS:
        return _moment(MOMENTS[parts[1]], parts[2], parts[3])
    if parts and parts[1] in FIELDS and parts[2] in ("=", "IN"):
        return _words(FIELDS[parts[1]], [word for word in re.sub("[\"'()]", "", parts[3]).split(",") if word])
    # What is no clause is taken for the name of a schedule.
    return Q(schedule_name=clause)


def _words(column: str, words: list[str]) -> Q:
    words = [word.strip() for word in words]
    if column == "workflow_name" and len(words) == 1:
        return Q(workflow_name__icontains=words[0].replace("*", ""))
    return Q(**{f"{column}__in": words})


def _moment(column: str, operator: str, value: str) -> Q:
    if operator == "IN":
        raise Invalid("A moment is compared with <, > or =.")
    moment = parse_integer(value.strip("\"'() "), "A moment in the query", 64)
    return Q(**{column + {"<": "__lt", ">": "__gt", "=": ""}[operator]: moment})


def order_rows(rows: QuerySet, sort: str, columns: Mapping[str, str], otherwise: tuple[str, ...]) -> QuerySet:
    """The rows by a list such as `scheduledTime:DESC,state:ASC`; what it does not know, it leaves out."""
    wanted = [each.strip().partition(":") for each in re.split("[,|]", sort)]
    known = [
        ("-" if direction.upper() == "DESC" else "") + columns[name]
        for name, _, direction in wanted
        if name in columns and direction.upper() in ("ASC", "DESC")
    ]
    return rows.order_by(*(known or otherwise), "pk")
