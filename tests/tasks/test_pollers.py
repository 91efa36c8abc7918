"""The record of the workers that poll."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.tasks.commands.pollers import record_poll, write_polls_if_due
from conductor_app.tasks.models import Poller

pytestmark = pytest.mark.django_db


def polled_at() -> dict[str, int]:
    return dict(Poller.objects.values_list("worker", "polled_at"))


def writes_of(captured: CaptureQueriesContext) -> int:
    return sum("INSERT INTO" in query["sql"] for query in captured.captured_queries)


def test_the_first_poll_of_a_worker_is_recorded_at_once(clock):
    record_poll("pay", "", "w1")
    clock.advance(seconds=0.1)
    record_poll("pay", "", "w2")

    assert polled_at() == {"w1": clock.now() - 100, "w2": clock.now()}


def test_later_polls_of_many_workers_are_written_in_one_statement(clock):
    workers = [f"w{number}" for number in range(50)]
    for worker in workers:
        record_poll("pay", "", worker)
    clock.advance(seconds=1)

    with CaptureQueriesContext(connection) as captured:
        for worker in workers:
            record_poll("pay", "", worker)
        write_polls_if_due()
        write_polls_if_due()

    assert writes_of(captured) == 1
    assert polled_at() == dict.fromkeys(workers, clock.now())


def test_polls_are_written_by_a_later_poll_if_no_lookup_does(clock):
    record_poll("pay", "", "w1")
    clock.advance(seconds=1)
    record_poll("pay", "", "w1")
    clock.advance(seconds=2)
    record_poll("pay", "", "w1")

    assert polled_at() == {"w1": clock.now()}


def test_a_poll_that_was_buffered_for_long_is_not_written(clock):
    record_poll("pay", "", "stopped")
    clock.advance(seconds=1)
    record_poll("pay", "", "stopped")
    clock.advance(seconds=60)
    record_poll("pay", "", "w2")

    assert polled_at() == {"stopped": clock.now() - 61_000, "w2": clock.now()}


def test_without_polls_nothing_is_written(db):
    with CaptureQueriesContext(connection) as captured:
        write_polls_if_due()

    assert len(captured) == 0
