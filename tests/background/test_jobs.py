"""Jobs may be called at any time and any number of times."""

from threading import BoundedSemaphore, Thread

import pytest

from conductor_app.background import jobs


@pytest.mark.django_db
def test_a_sweep_with_nothing_to_do_ends_at_once():
    jobs.sweep()


@pytest.mark.django_db
def test_built_in_workers_with_nothing_to_do_end_at_once():
    jobs.work()


def test_who_finds_the_door_held_goes_away():
    door = BoundedSemaphore(1)

    with jobs._acquire(door) as first, jobs._acquire(door) as second:
        assert (first, second) == (True, False)

    assert held(door) == 0


def test_who_waits_at_the_door_enters_when_it_is_left():
    door = BoundedSemaphore(1)
    entered = []

    def come():
        with jobs._acquire(door, seconds=5) as is_mine:
            entered.append(is_mine)

    with jobs._acquire(door):
        waiter = Thread(target=come)
        waiter.start()
    waiter.join()

    assert entered == [True]
    assert held(door) == 0


def test_the_door_is_left_when_the_job_fails():
    door = BoundedSemaphore(1)

    with pytest.raises(ZeroDivisionError), jobs._acquire(door):
        _ = 1 / 0

    assert held(door) == 0


def test_some_threads_are_kept_for_sweeps(settings):
    assert jobs._working._initial_value <= settings.CELERY_WORKER_CONCURRENCY - jobs.THREADS_RESERVED_FOR_SWEEPS


def held(door) -> int:
    return door._initial_value - door._value
