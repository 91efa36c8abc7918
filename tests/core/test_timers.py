"""Timers of attempts and runs (execution §4.1, §4.5)."""

from dataclasses import replace

import pytest

from conductor_app.core.definition import Policy
from conductor_app.core.snapshot import NEVER, Attempt, Run
from conductor_app.core.timers import next_timer, run_ends_at, timers_of
from tests.builders import plan, step

ALL = Policy(total_seconds=100, timeout_seconds=30, lease_seconds=20, poll_seconds=60)
PENDING = Attempt("id", 0, 1, "PENDING", scheduled_at=10_000, pending_since=10_000, timeout_ms=30_000, lease_ms=20_000)
LEASED = replace(PENDING, status="LEASED", started_at=12_000, lease_ends_at=32_000)
RETRY = replace(PENDING, number=1, delay_ms=5_000, callback_ms=5_000, visible_at=15_000)


@pytest.mark.parametrize(
    ("policy", "attempt", "expected"),
    [
        pytest.param(Policy(), PENDING, {}, id="no limits"),
        pytest.param(ALL, PENDING, {"poll": 70_000}, id="pending: poll timeout from the scheduling"),
        pytest.param(ALL, RETRY, {"poll": 80_000}, id="retry: poll timeout after the delay"),
        pytest.param(ALL, LEASED, {"task": 42_000, "response": 32_000}, id="leased: task timeout from the first claim"),
        pytest.param(
            ALL,
            replace(LEASED, delay_ms=5_000),
            {"task": 47_000, "response": 32_000},
            id="leased: task timeout extended by the retry delay",
        ),
        pytest.param(
            ALL, replace(LEASED, lease_ends_at=None), {"task": 42_000}, id="leased without a response timeout"
        ),
        pytest.param(
            ALL,
            replace(LEASED, status="PENDING", pending_since=20_000, callback_ms=9_000, lease_ends_at=None),
            {"task": 42_000, "poll": 89_000},
            id="released: poll timeout after the callback",
        ),
        pytest.param(
            ALL, replace(PENDING, total_ends_at=110_000), {"total": 110_000, "poll": 70_000}, id="total timeout"
        ),
    ],
)
def test_an_attempt_has_the_timers_of_its_policy(policy, attempt, expected):
    assert {timer.name: timer.at for timer in timers_of(policy, attempt)} == expected


def test_timers_are_checked_in_the_order_total_task_poll_response():
    attempt = replace(LEASED, total_ends_at=110_000)

    assert [timer.name for timer in timers_of(ALL, attempt)] == ["total", "task", "response"]


def test_an_expired_timer_is_not_the_next_one():
    assert next_timer(ALL, LEASED) == 32_000
    assert next_timer(ALL, LEASED, after=32_000) == 42_000
    assert next_timer(ALL, LEASED, after=42_000) == NEVER


@pytest.mark.parametrize(
    ("fields", "last_retried_at", "ends_at"),
    [
        pytest.param({}, 0, NEVER, id="no timeout"),
        pytest.param({"timeoutSeconds": 60}, 0, NEVER, id="default policy"),
        pytest.param({"timeoutSeconds": 60, "timeoutPolicy": "ALERT_ONLY"}, 0, NEVER, id="alert-only policy"),
        pytest.param(
            {"timeoutSeconds": 60, "timeoutPolicy": "TIME_OUT_WF"}, 0, 61_000, id="from the creation of the run"
        ),
        pytest.param(
            {"timeoutSeconds": 60, "timeoutPolicy": "TIME_OUT_WF"}, 9_000, 69_000, id="from the last retry or resume"
        ),
    ],
)
def test_when_a_run_times_out(fields, last_retried_at, ends_at):
    run = Run("run", plan(step("a"), **fields), "RUNNING", created_at=1_000, last_retried_at=last_retried_at)

    assert run_ends_at(run) == ends_at
