"""Polls that wait hold a thread each: some threads of a process stay free for work."""

from contextlib import ExitStack
from threading import Thread

from django.db import connection

from conductor_app import notifications
from conductor_app.engine.tasks import task_commands


def test_a_poll_beyond_the_limit_of_waiting_polls_returns_immediately(transactional_db, settings):
    settings.CONDUCTOR_MOST_WAITING_POLLS = 0
    answers = []

    def poll() -> None:
        answers.append(task_commands.claim_tasks("nothing", wait_ms=60_000))
        connection.close()

    poller = Thread(target=poll, daemon=True)
    poller.start()
    poller.join(10)

    assert answers == [[]]


def test_no_attempt_is_claimed_for_a_disconnected_worker():
    taken = []

    for wait_ms in (0, 60_000):
        assert task_commands.long_poll("pay", wait_ms, lambda: taken.append("pay") or ["pay"], lambda: True) == []

    assert taken == []


def test_a_notification_for_a_disconnected_worker_goes_to_the_next_waiter(db):
    answers, waiters = iter([False, True]), []
    with ExitStack() as others:

        def another_comes_and_so_does_work():
            waiters.append(others.enter_context(notifications.subscribe("pay")))
            notifications.announce(["pay"])
            return []

        assert task_commands.long_poll("pay", 60_000, another_comes_and_so_does_work, lambda: next(answers)) == []
        assert [waiter.was_notified for waiter in waiters] == [True]
