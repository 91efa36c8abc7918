"""Each process compares its clock with the database's, and reports a difference above the tolerance."""

import logging

import pytest
from django.db import connection
from django.test import Client

from conductor_app.celery import app
from conductor_app.db.leases import heartbeat
from conductor_app.monitoring import commands as server_clocks
from conductor_app.monitoring.commands import HOST, ClockCheck, is_skewed, skew_sentence
from conductor_app.monitoring.models import ServerClock
from conductor_app.monitoring.queries.health import BEAT
from conductor_app.processes import beat as leader_scheduler
from conductor_app.processes import sweep_loop as sweep_watchdog
from conductor_app.utils import clock as product_clock

pytestmark = pytest.mark.django_db
needs_a_database_clock = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no clock.")
LOGGER = "conductor_app.monitoring.commands"
HOUR_MS = 3_600_000


@pytest.fixture
def step_clock(monkeypatch):
    """Return a function that steps this process's clock by milliseconds."""
    original = product_clock._source

    def step(milliseconds):
        monkeypatch.setattr(product_clock, "_source", lambda: original() + milliseconds * 1_000_000)

    return step


@pytest.fixture
def seconds():
    return [1000.0]


@pytest.fixture
def check(seconds):
    """Return a function that compares the clocks, and lets the interval pass."""
    own = ClockCheck(lambda: seconds[0])

    def compare():
        own.check()
        seconds[0] += server_clocks.INTERVAL_SECONDS

    return compare


def messages(caplog):
    return [(record.levelname, record.message) for record in caplog.records if record.name == LOGGER]


@needs_a_database_clock
@pytest.mark.parametrize("skew", [2_000, -2_000])
def test_a_wrong_clock_is_saved_with_its_host_and_logged_once(check, step_clock, caplog, skew):
    caplog.set_level(logging.INFO, LOGGER)
    step_clock(skew)

    for _ in range(3):
        check()

    row = ServerClock.objects.get()
    assert (row.host, round(row.ahead_ms, -3)) == (HOST, skew)
    assert messages(caplog) == [("WARNING", "clock_skewed")]


@needs_a_database_clock
def test_a_corrected_clock_is_logged_and_a_later_difference_again(check, step_clock, caplog):
    caplog.set_level(logging.INFO, LOGGER)
    for skew in (0, 2_000, 0, 0, 2_000):
        step_clock(skew)
        check()

    assert [text for _, text in messages(caplog)] == ["clock_skewed", "clock_synchronized", "clock_skewed"]


@needs_a_database_clock
def test_hosts_that_have_stopped_are_removed(check):
    ServerClock.objects.create(host="gone", ahead_ms=0, measured_at=product_clock.now() - HOUR_MS)
    ServerClock.objects.create(host="other", ahead_ms=0, measured_at=product_clock.now())

    check()

    assert set(ServerClock.objects.values_list("host", flat=True)) == {HOST, "other"}


def test_a_comparison_within_the_interval_costs_no_statement(seconds, django_assert_num_queries):
    own = ClockCheck(lambda: seconds[0])
    own.check()
    seconds[0] += server_clocks.INTERVAL_SECONDS - 1

    with django_assert_num_queries(0):
        own.check()


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL has a clock.")
def test_a_database_file_has_no_clock_to_compare_with(check, step_clock, django_assert_num_queries):
    step_clock(2_000)

    with django_assert_num_queries(0):
        check()


def test_the_tolerance_is_a_setting(settings):
    assert [is_skewed(ahead) for ahead in (500, -500, 501, -501)] == [False, False, True, True]
    settings.CONDUCTOR_MAX_CLOCK_SKEW_MS = 2_000
    assert not is_skewed(2_000)
    settings.CONDUCTOR_MAX_CLOCK_SKEW_MS = 0
    assert not is_skewed(HOUR_MS)


def test_the_sentence_names_the_host_and_the_amount():
    assert skew_sentence(1_500, "web-1").startswith("The clock of web-1 is 1,500 ms ahead of the database's.")
    assert skew_sentence(-700, "web-1").startswith("The clock of web-1 is 700 ms behind the database's.")


@needs_a_database_clock
def test_readiness_reports_a_wrong_clock_and_the_server_stays_ready(step_clock):
    step_clock(3_000)

    reply = Client().get("/health/ready")

    document = reply.json()
    error = next(check.get("error", "") for check in document["checks"] if check["name"] == "clock")
    assert (reply.status_code, document["status"]) == (200, "degraded")
    assert HOST in error and "ahead of the database's" in error


@needs_a_database_clock
@pytest.mark.django_db(transaction=True)
def test_web_processes_and_workers_compare_their_clocks_in_the_watchdog():
    sweep_watchdog.watch_once(sweep_watchdog.SweepWatchdog(lambda horizon: None))

    assert ServerClock.objects.get().host == HOST


@needs_a_database_clock
@pytest.mark.django_db(transaction=True)
def test_a_standby_beat_compares_its_clock():
    active = heartbeat(BEAT)
    active.beat(active.read())

    assert leader_scheduler.LeaderScheduler(app=app).tick() == leader_scheduler.RENEW_SECONDS

    assert ServerClock.objects.get().host == HOST


def test_the_difference_is_measured_at_the_middle_of_the_statement():
    if connection.vendor == "postgresql":
        assert abs(server_clocks.clock_skew_ms()) < 500
    else:
        assert server_clocks.clock_skew_ms() == 0
