"""The usage report: its sums, and statements that read indexes instead of all calls."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.ai.models import ModelCall, ModelUsage
from conductor_app.ai.queries import usage as report
from conductor_app.ai.queries.budgets import format_cost
from conductor_app.ai.store import BudgetedCall, RunLine, budgets_for, spent_below
from conductor_app.utils.formatting import TimeRange

pytestmark = pytest.mark.django_db
HOUR, DAY = 3_600_000, 86_400_000


def add_usage(clock, hours_ago, **sums):
    hour = clock.now() - clock.now() % HOUR - hours_ago * HOUR
    names = {"integration": "openai", "model": "small", "definition": "agent", "caller": "olga"}
    ModelUsage.objects.create(hour=hour, **{**names, "calls": 1, **sums})


def add_call(clock, id, **fields):
    known = {"request_key": id, "run_id": "r", "task_id": "t", "attempt_id": "a", "definition": "agent", "version": 1}
    known |= {"integration": "openai", "model": "small", "status": "REPLIED", "prompt_tokens": 10}
    ModelCall.objects.create(id=id, **{**known, "started_at": clock.now(), "ended_at": clock.now() + 5, **fields})


@pytest.mark.parametrize(("name", "hours"), [("24h", 23), ("7d", 165), ("30d", 696)])
def test_a_range_includes_its_first_hour_and_nothing_before(clock, name, hours):
    time_range = TimeRange.aligned(name, clock.now())
    first = (clock.now() - clock.now() % HOUR - time_range.since) // HOUR
    add_usage(clock, first, cost=5)
    add_usage(clock, first + 1, cost=7)

    bars = report.usage_report(time_range, {}).bars
    assert first >= hours
    assert (bars[0].cost, sum(bar.cost for bar in bars), len(bars)) == (5, 5, time_range.count)


def test_a_table_has_the_rows_that_cost_most(clock, monkeypatch):
    monkeypatch.setattr(report, "MAX_ROWS", 2)
    for number in range(3):
        add_usage(clock, 1, definition=f"w{number}", cost=number)

    rows = report.usage_report(TimeRange.aligned("24h", clock.now()), {}).definitions
    assert [row.names for row in rows] == [("w2",), ("w1",)]


def test_only_the_newest_calls_are_counted_by_run(clock, monkeypatch):
    monkeypatch.setattr(report, "MAX_CALLS", 1)
    add_call(clock, "old", run_id="first", started_at=clock.now() - 10)
    assert not report.usage_report(TimeRange.aligned("1h", clock.now()), {}).is_cut
    add_call(clock, "new", run_id="second")

    found = report.usage_report(TimeRange.aligned("1h", clock.now()), {})
    assert ([row.names for row in found.runs], found.is_cut) == ([("second", "agent")], True)


def test_a_lost_call_is_a_failure(clock):
    add_call(clock, "lost", status="LOST")

    assert report.usage_report(TimeRange.aligned("1h", clock.now()), {}).total.failures == 1


EXPECTED_INDEXES = {
    "hour": (lambda now: report.usage_report(TimeRange.aligned("1h", now), {}), {"model_call_by_time"}),
    "month": (lambda now: report.usage_report(TimeRange.aligned("30d", now), {}), {"one_usage_per_hour"}),
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
