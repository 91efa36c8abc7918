"""What calls of models have used: sums, amounts, and statements that read indexes instead of all calls."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.ai.models import ModelCall
from conductor_app.ai.queries import usage as report
from conductor_app.ai.queries.budgets import format_cost
from conductor_app.ai.store import BudgetedCall, RunLine, budgets_for, spent_below

pytestmark = pytest.mark.django_db


def add_call(clock, id, **fields):
    known = {"request_key": id, "run_id": "r", "task_id": "t", "attempt_id": "a", "definition": "agent", "version": 1}
    known |= {"integration": "openai", "model": "small", "status": "REPLIED", "prompt_tokens": 10}
    ModelCall.objects.create(id=id, **{**known, "started_at": clock.now(), "ended_at": clock.now() + 5, **fields})


EXPECTED_INDEXES = {
    "run": (lambda now: report.usage_of_run("r", "r"), {"model_call_by_root"}),
    "run below another": (lambda now: report.usage_of_run("r", "top"), {"model_call_by_run"}),
    "spent by a run": (lambda now: spent_below("r", "r"), {"model_call_by_root"}),
    "definition": (lambda now: report.usage_of_definition("agent", now), {"model_usage_by_definition"}),
}


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL chooses its plans by table statistics.")
@pytest.mark.parametrize(("read", "expected"), EXPECTED_INDEXES.values(), ids=EXPECTED_INDEXES)
def test_no_statement_reads_all_calls_or_all_hours(clock, read, expected):
    with CaptureQueriesContext(connection) as captured:
        read(clock.now())
    with connection.cursor() as cursor:
        steps = []
        for each in captured:
            cursor.execute("EXPLAIN QUERY PLAN " + each["sql"].replace("%", "%%"), [])
            steps += [detail for *_, detail in cursor.fetchall()]

    read_tables = [step for step in steps if "conductor_model" in step]
    assert read_tables
    assert not [step for step in read_tables if step.startswith("SCAN")]
    assert any(name in step or "sqlite_autoindex" in step for step in read_tables for name in expected)


def test_budgets_are_found_by_one_statement(clock, django_assert_num_queries):
    call = BudgetedCall(RunLine((("r", "agent"),), "r", "olga"), "agent", "olga", "openai", "small")

    with django_assert_num_queries(1):
        assert list(budgets_for(call)) == []


@pytest.mark.parametrize(
    ("cost", "currency", "text"),
    [
        (0, "USD", "$0.00"),
        (1, "USD", "$0.000001"),
        (123, "USD", "$0.00012"),
        (45_000, "USD", "$0.045"),
        (1_400_000, "USD", "$1.40"),
        (1_234_567_890_000, "USD", "$1,234,567.89"),
        (1_400_000, "EUR", "1.40 EUR"),
    ],
)
def test_an_amount_keeps_two_significant_digits(settings, cost, currency, text):
    settings.CONDUCTOR_AI_CURRENCY = currency

    assert format_cost(cost) == text
