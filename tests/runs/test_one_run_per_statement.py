"""Starts, claims and reports name the rows of one run per statement, so that runs could be spread over databases."""

from collections.abc import Iterable
from typing import Any

import pytest
from django.db import connection

from conductor_app.runs.models import Attempt, HistoryEntry, Run, Task
from tests.builders import step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db

HOT_TABLES = [model._meta.db_table for model in (Run, Task, Attempt, HistoryEntry)]


class SentStatements:
    """Records the statements on hot tables with their parameters."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, list[Any]]] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if any(table in sql for table in HOT_TABLES):
            self.statements.append((sql, list(params or ())))
        return execute(sql, params, many, context)


def run_of_each_id() -> dict[str, str]:
    rows = [*Task.objects.values_list("id", "run_id"), *Attempt.objects.values_list("id", "run_id")]
    return dict(rows) | {id: id for id in Run.objects.values_list("id", flat=True)}


def runs_named_by(params: Iterable[Any], runs: dict[str, str]) -> set[str]:
    return {runs[value] for value in params if isinstance(value, str) and value in runs}


def test_no_statement_of_a_start_a_claim_or_a_report_names_two_runs(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    others = [scenario.starts("order") for _ in range(2)]
    sent = SentStatements()

    with connection.execute_wrapper(sent):
        scenario.starts("order")
        for _ in range(4):
            scenario.worker("a").completes()
        scenario.worker("b").fails()

    runs = run_of_each_id()
    named = [(sql, runs_named_by(params, runs)) for sql, params in sent.statements]
    assert [sql for sql, found in named if len(found) > 1] == []
    assert {scenario.id, *(other.id for other in others)} <= set().union(*(found for _, found in named))
