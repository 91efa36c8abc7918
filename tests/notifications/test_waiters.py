"""Wakeups within one process."""

from threading import Thread

import pytest

from conductor_app import notifications
from conductor_app.notifications.waiters import WaiterRegistry

AT_ONCE, A_WHILE = 0, 5


@pytest.fixture
def waiters():
    return WaiterRegistry()


def test_a_hint_between_check_and_wait_ends_the_wait_at_once(waiters):
    with waiters.subscribe("pay") as waiter:
        waiters.wake(["pay"])

        assert waiter.wait(A_WHILE)


def test_a_hint_wakes_a_sleeping_waiter(waiters):
    woken = []
    with waiters.subscribe("pay") as waiter:
        sleeper = Thread(target=lambda: woken.append(waiter.wait(A_WHILE)))
        sleeper.start()
        waiters.wake(["pay"])
        sleeper.join()

    assert woken == [True]


def test_a_wait_without_a_hint_ends_by_itself(waiters):
    with waiters.subscribe("pay") as waiter:
        assert not waiter.wait(AT_ONCE)


def test_a_hint_for_another_queue_is_ignored(waiters):
    with waiters.subscribe("pay") as waiter:
        waiters.wake(["ship"])

        assert not waiter.wait(AT_ONCE)


def test_a_hint_is_used_up_by_the_wait_that_it_ends(waiters):
    with waiters.subscribe("pay") as waiter:
        waiters.wake(["pay"])

        assert [waiter.wait(AT_ONCE), waiter.wait(AT_ONCE)] == [True, False]


def test_one_task_wakes_the_longest_waiting_waiter(waiters):
    with waiters.subscribe("pay") as first, waiters.subscribe("pay") as second:
        waiters.wake(["pay"])

        assert [first.wait(AT_ONCE), second.wait(AT_ONCE)] == [True, False]


def test_each_hint_for_a_queue_wakes_one_more_waiter(waiters):
    with waiters.subscribe("pay") as first, waiters.subscribe("pay") as second, waiters.subscribe("pay") as third:
        waiters.wake(["pay", "pay"])

        assert [waiter.wait(AT_ONCE) for waiter in (first, second, third)] == [True, True, False]


def test_an_unused_hint_is_passed_to_the_next_waiter(waiters):
    with waiters.subscribe("pay") as stays:
        with waiters.subscribe("pay"):
            waiters.wake(["pay", "pay"])
            assert stays.wait(AT_ONCE)

        assert stays.wait(AT_ONCE)


def test_all_waiters_wake_at_shutdown(waiters):
    with waiters.subscribe("pay") as one, waiters.subscribe("ship") as other:
        waiters.close()

        assert one.wait(AT_ONCE) and other.wait(AT_ONCE)
        assert waiters.is_closing


def test_an_announcement_is_received_in_its_own_process():
    with notifications.subscribe("pay") as waiter:
        notifications.announce(["pay"])

        assert waiter.wait(A_WHILE)


def test_an_announcement_to_a_failing_subscriber_does_not_raise(monkeypatch):
    from conductor_app.notifications import channel

    monkeypatch.setattr(channel, "_announcement_listeners", [lambda queues: 1 / 0])

    with notifications.subscribe("pay") as waiter:
        notifications.announce(["pay"])

        assert waiter.wait(A_WHILE)
