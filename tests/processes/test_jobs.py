"""Jobs may be called at any time and any number of times."""

from threading import BoundedSemaphore, Thread

import pytest
from django.db import OperationalError

from conductor_app.processes import background, jobs


@pytest.mark.django_db
def test_a_sweep_without_work_ends_at_once():
    jobs.sweep(0)


@pytest.mark.django_db
def test_built_in_workers_without_tasks_end_at_once():
    jobs.work()


def test_a_job_whose_lock_is_taken_ends_at_once():
    door = BoundedSemaphore(1)

    with background.acquire(door) as first, background.acquire(door) as second:
        assert (first, second) == (True, False)

    assert held(door) == 0


def test_a_waiting_job_starts_when_the_lock_is_released():
    door = BoundedSemaphore(1)
    entered = []

    def come():
        with background.acquire(door, seconds=5) as is_mine:
            entered.append(is_mine)

    with background.acquire(door):
        waiter = Thread(target=come)
        waiter.start()
    waiter.join()

    assert entered == [True]
    assert held(door) == 0


def test_a_failing_job_releases_its_lock():
    door = BoundedSemaphore(1)

    with pytest.raises(ZeroDivisionError), background.acquire(door):
        _ = 1 / 0

    assert held(door) == 0


def test_some_threads_are_reserved_for_sweeps(settings):
    others = settings.CELERY_WORKER_CONCURRENCY - background.THREADS_RESERVED_FOR_SWEEPS

    assert background._working._initial_value <= others


def held(door) -> int:
    return door._initial_value - door._value


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [OperationalError("the connection is closed"), ZeroDivisionError()])
def test_a_failing_step_of_a_job_does_not_stop_the_others(error):
    def fail():
        raise error

    done = []

    background.run_each(fail, lambda: done.append("next"))

    assert done == ["next"]
