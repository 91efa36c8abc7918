"""Who is woken within one process."""

from threading import Thread

import pytest

from conductor_app import wakeups
from conductor_app.wakeups.waiters import Ears

AT_ONCE, A_WHILE = 0, 5


@pytest.fixture
def ears():
    return Ears()


def test_a_hint_between_looking_and_waiting_ends_the_wait_at_once(ears):
    with ears.listening("pay") as ear:
        ears.wake(["pay"])

        assert ear.wait(A_WHILE)


def test_a_hint_wakes_a_waiter_that_sleeps_already(ears):
    woken = []
    with ears.listening("pay") as ear:
        sleeper = Thread(target=lambda: woken.append(ear.wait(A_WHILE)))
        sleeper.start()
        ears.wake(["pay"])
        sleeper.join()

    assert woken == [True]


def test_a_wait_without_a_hint_ends_by_itself(ears):
    with ears.listening("pay") as ear:
        assert not ear.wait(AT_ONCE)


def test_a_hint_for_another_queue_is_not_heard(ears):
    with ears.listening("pay") as ear:
        ears.wake(["ship"])

        assert not ear.wait(AT_ONCE)


def test_a_hint_is_used_up_by_the_wait_that_it_ends(ears):
    with ears.listening("pay") as ear:
        ears.wake(["pay"])

        assert [ear.wait(AT_ONCE), ear.wait(AT_ONCE)] == [True, False]


def test_one_piece_of_work_wakes_the_waiter_that_has_waited_longest(ears):
    with ears.listening("pay") as first, ears.listening("pay") as second:
        ears.wake(["pay"])

        assert [first.wait(AT_ONCE), second.wait(AT_ONCE)] == [True, False]


def test_each_mention_of_a_queue_wakes_one_more(ears):
    with ears.listening("pay") as first, ears.listening("pay") as second, ears.listening("pay") as third:
        ears.wake(["pay", "pay"])

        assert [ear.wait(AT_ONCE) for ear in (first, second, third)] == [True, True, False]


def test_a_hint_that_its_waiter_did_not_use_goes_to_the_next(ears):
    with ears.listening("pay") as stays:
        with ears.listening("pay"):
            ears.wake(["pay", "pay"])
            assert stays.wait(AT_ONCE)

        assert stays.wait(AT_ONCE)


def test_everybody_is_woken_for_the_last_time_when_the_process_is_about_to_end(ears):
    with ears.listening("pay") as one, ears.listening("ship") as other:
        ears.close()

        assert one.wait(AT_ONCE) and other.wait(AT_ONCE)
        assert ears.is_closing


def test_an_announcement_is_heard_in_its_own_process():
    with wakeups.listening("pay") as ear:
        wakeups.announce(["pay"])

        assert ear.wait(A_WHILE)


def test_an_announcement_never_raises_for_those_who_are_told_too(monkeypatch):
    from conductor_app.wakeups import channel

    monkeypatch.setattr(channel, "_told_too", [lambda queues: 1 / 0])

    with wakeups.listening("pay") as ear:
        wakeups.announce(["pay"])

        assert ear.wait(A_WHILE)
