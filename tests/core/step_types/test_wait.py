"""WAIT: formats of durations and timestamps, and the end of the wait (execution §8.13)."""

import pytest

from conductor_app.core.errors import StepRefused
from conductor_app.core.step_types.waiting import parse_duration, parse_timestamp
from tests.builders import plan, step, wait
from tests.core.simulated_run import RunInMemory

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 seconds", 5 * SECOND),
        ("5 secs", 5 * SECOND),
        ("5 sec", 5 * SECOND),
        ("5s", 5 * SECOND),
        ("2 minutes", 2 * MINUTE),
        ("2 mins", 2 * MINUTE),
        ("2 min", 2 * MINUTE),
        ("2m", 2 * MINUTE),
        ("3 hours", 3 * HOUR),
        ("3 hrs", 3 * HOUR),
        ("3 hr", 3 * HOUR),
        ("3h", 3 * HOUR),
        ("1 day", DAY),
        ("4 days", 4 * DAY),
        ("4d", 4 * DAY),
        ("1 DAYS 2 Hours 3 MINUTES 4 seconds", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND),
        ("1d2h3m4s", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND),
        ("  1 d  4 s ", DAY + 4 * SECOND),
        ("0 seconds", 0),
    ],
)
def test_durations_that_are_understood(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["5", "1.5 hours", "", "soon", "4 seconds 1 day", "-5 seconds", "5 weeks", "5 s x", 7])
def test_durations_that_are_refused(text):
    with pytest.raises(StepRefused, match="Invalid"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-02", DAY),
        ("1970-01-01 00:01", MINUTE),
        ("1970-01-01 02:00 GMT+02:00", 0),
        ("1970-01-01 02:00 +0200", 0),
        ("1970-01-01 01:00 UTC", HOUR),
        ("1970-01-01 01:00 PST", 9 * HOUR),
        ("1970-01-32 00:00", 31 * DAY),
    ],
)
def test_valid_timestamps_are_parsed(text, expected):
    assert parse_timestamp(text) == expected


@pytest.mark.parametrize("text", ["tomorrow", "1970-13-01", "1970-01-01 00:00 Europe/Paris", "01.02.1970", "", None])
def test_invalid_timestamps_are_refused(text):
    with pytest.raises(StepRefused):
        parse_timestamp(text)


def test_a_wait_ends_at_its_due_time():
    run = RunInMemory(plan(wait("pause", duration="10 seconds"), step("a")))

    assert run.later(9).statuses == {"pause": "IN_PROGRESS"}
    assert run.later(1).statuses == {"pause": "COMPLETED", "a": "SCHEDULED"}


def test_a_wait_until_a_past_time_completes_immediately():
    run = RunInMemory(plan(wait("pause", until="1970-01-01 00:00"), step("a")))

    assert run.statuses == {"pause": "COMPLETED", "a": "SCHEDULED"}


def test_a_wait_without_an_end_waits_for_a_report():
    run = RunInMemory(plan(wait("pause"))).later(10**6)
    assert run.status == "RUNNING"

    assert run.completes("pause", said="go").status == "COMPLETED"


def test_a_wait_can_be_completed_early():
    run = RunInMemory(plan(wait("pause", duration="1 day"), step("a"))).completes("pause")

    assert run.statuses == {"pause": "COMPLETED", "a": "SCHEDULED"}


@pytest.mark.parametrize(
    "inputs", [{"duration": "5 s", "until": "1970-01-02"}, {"duration": "nonsense"}, {"until": "nonsense"}]
)
def test_an_invalid_wait_fails_terminally(inputs):
    run = RunInMemory(plan(wait("pause", **inputs)))

    assert run.statuses == {"pause": "FAILED_WITH_TERMINAL_ERROR"}
    assert run.status == "FAILED"
    assert "'duration'" in run.snapshot.reason or "Invalid" in run.snapshot.reason


def test_a_retried_wait_keeps_its_timer():
    run = RunInMemory(plan(wait("pause", duration="10 seconds"))).later(5)
    run.fails("pause")

    run.retry()

    assert run.later(4).status == "RUNNING"
    assert run.later(1).status == "COMPLETED"


def test_wait_until_of_the_python_sdk_is_read_as_until():
    run = RunInMemory(plan(wait("pause", wait_until="1970-01-01 00:01")))

    assert run.later(59).status == "RUNNING"
    assert run.later(1).status == "COMPLETED"
