"""The scheduler of Celery beat reads the schedule and its changes from the database."""

import pytest

from conductor_app.celery import app
from conductor_app.processes.background import PERIODIC_JOBS, sync_periodic_jobs
from conductor_app.processes.beat import LeaderScheduler

# The scheduler closes the connection.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scheduler():
    sync_periodic_jobs()
    return LeaderScheduler(app=app, lazy=True)


def test_the_schedule_has_the_periodic_jobs(scheduler):
    assert set(scheduler.schedule) == set(PERIODIC_JOBS)


def test_an_unchanged_schedule_is_not_read_at_every_call(scheduler, django_assert_num_queries):
    _ = scheduler.schedule, scheduler.schedule

    with django_assert_num_queries(0):
        _ = scheduler.schedule
