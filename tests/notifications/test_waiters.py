"""Wakeups within one process."""

from contextlib import ExitStack, suppress
from threading import Thread

import pytest

from conductor_app import notifications
from conductor_app.notifications.channel import WaiterRegistry
from tests.clients.wait_until import eventually

AT_ONCE, A_WHILE = 0, 5


@pytest.fixture
def waiters():
    return WaiterRegistry()


def test_a_hint_between_check_and_wait_ends_the_wait_at_once(waiters):
    with waiters.subscribe("pay") as waiter:
        waiters.wake({"pay": 1})

        assert waiter.wait(A_WHILE)


def test_a_hint_wakes_a_sleeping_waiter(waiters):
    woken = []
    with waiters.subscribe("pay") as waiter:
        sleeper = Thread(target=lambda: woken.append(waiter.wait(A_WHILE)))
        sleeper.start()
        waiters.wake({"pay": 1})
        sleeper.join()

    assert woken == [True]


def test_a_wait_without_a_hint_ends_by_itself(waiters):
    with waiters.subscribe("pay") as waiter:
        assert not waiter.wait(AT_ONCE)


def test_a_hint_for_another_queue_is_ignored(waiters):
    with waiters.subscribe("pay") as waiter:
        waiters.wake({"ship": 1})

        assert not waiter.wait(AT_ONCE)


def test_a_hint_is_used_up_by_the_wait_that_it_ends(waiters):
    with waiters.subscribe("pay") as waiter:
        waiters.wake({"pay": 1})

        assert [waiter.wait(AT_ONCE), waiter.wait(AT_ONCE)] == [True, False]


def test_one_task_wakes_the_longest_waiting_waiter(waiters):
    with waiters.subscribe("pay") as first, waiters.subscribe("pay") as second:
        waiters.wake({"pay": 1})

        assert [first.wait(AT_ONCE), second.wait(AT_ONCE)] == [True, False]


def test_each_hint_for_a_queue_wakes_one_more_waiter(waiters):
    with waiters.subscribe("pay") as first, waiters.subscribe("pay") as second, waiters.subscribe("pay") as third:
        waiters.wake({"pay": 2})

        assert [waiter.wait(AT_ONCE) for waiter in (first, second, third)] == [True, True, False]


def test_an_unused_hint_is_passed_to_the_next_waiter(waiters):
    with waiters.subscribe("pay") as stays:
        with waiters.subscribe("pay"):
            waiters.wake({"pay": 2})
            assert stays.wait(AT_ONCE)

        assert stays.wait(AT_ONCE)


def test_one_task_among_200_waiters_wakes_one_of_them(waiters):
    with ExitStack() as stack:
        all_waiters = [stack.enter_context(waiters.subscribe("pay")) for _ in range(200)]

        waiters.wake({"pay": 1})

        assert sum(waiter.was_notified for waiter in all_waiters) == 1


def test_a_waiter_is_notified_of_as_many_attempts_as_it_can_claim(waiters):
    with waiters.subscribe("pay", most=20) as first, waiters.subscribe("pay", most=20) as second:
        waiters.wake({"pay": 20})

        assert [first.wait(AT_ONCE), second.wait(AT_ONCE)] == [True, False]


def test_attempts_beyond_the_waiters_of_a_process_are_for_other_processes(waiters):
    with waiters.subscribe("pay", most=3):
        assert waiters.wake({"pay": 5, "ship": 1}) == {"pay": 2, "ship": 1}


def test_a_claim_of_less_than_announced_has_missed_the_rest(waiters):
    with waiters.subscribe("pay", most=20) as waiter:
        waiters.wake({"pay": 5})
        waiter.wait(AT_ONCE)

        assert [waiter.finish_claim(3), waiter.finish_claim(0)] == [2, 0]


def test_what_is_announced_during_a_claim_is_not_part_of_it(waiters):
    with waiters.subscribe("pay") as waiter:
        waiters.wake({"pay": 1})
        waiter.wait(AT_ONCE)
        waiters.wake({"pay": 1})

        assert waiter.finish_claim(0) == 1
        assert waiter.wait(AT_ONCE)


def test_waiting_waiters_are_preferred_to_claiming_ones(waiters):
    woken = []
    with waiters.subscribe("pay") as claiming, waiters.subscribe("pay") as waiting:
        sleeper = Thread(target=lambda: woken.append(waiting.wait(A_WHILE)))
        sleeper.start()
        eventually(lambda: waiting.is_waiting)
        waiters.wake({"pay": 1})
        sleeper.join()

        assert woken == [True]
        assert not claiming.was_notified


def test_a_notification_is_passed_on_if_the_claim_fails(waiters):
    with waiters.subscribe("pay") as stays:
        with suppress(ZeroDivisionError), waiters.subscribe("pay") as fails:
            waiters.wake({"pay": 2})
            stays.wait(AT_ONCE)
            fails.wait(AT_ONCE)
            1 / 0  # noqa: B018

        assert stays.wait(AT_ONCE)


def test_a_notification_without_another_waiter_is_for_other_processes(waiters):
    with waiters.subscribe("pay", most=3) as waiter:
        waiters.wake({"pay": 2})

    assert waiter.unclaimed == 2


def test_a_waiter_that_claims_nothing_becomes_the_last_one(waiters):
    with waiters.subscribe("pay") as drained, waiters.subscribe("pay") as other:
        drained.finish_claim(0)
        waiters.wake({"pay": 1})

        assert [drained.was_notified, other.was_notified] == [False, True]


def test_the_waiter_of_a_disconnected_client_wakes(waiters):
    woken = []
    with waiters.subscribe("pay") as stays, waiters.subscribe("pay", has_left=lambda: True) as left:
        sleeper = Thread(target=lambda: woken.append(left.wait(A_WHILE)))
        sleeper.start()
        eventually(lambda: left.is_waiting)
        waiters.wake_disconnected()
        sleeper.join()

        assert woken == [True]
        assert not stays.was_notified


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

    monkeypatch.setattr(channel._announcement_listeners, "value", (lambda queues: 1 / 0,))

    with notifications.subscribe("pay") as waiter:
        notifications.announce(["pay"])

        assert waiter.wait(A_WHILE)
