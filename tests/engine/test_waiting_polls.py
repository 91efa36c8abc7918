"""Polls that wait hold a thread each: some threads of a process stay free for work."""

from threading import Thread

from django.db import connection

from conductor_app.engine import tasks


def test_a_poll_beyond_those_that_may_wait_is_answered_at_once(transactional_db, settings):
    settings.CONDUCTOR_MOST_WAITING_POLLS = 0
    answers = []

    def poll() -> None:
        answers.append(tasks.claim("nothing", wait_ms=60_000))
        connection.close()

    poller = Thread(target=poll, daemon=True)
    poller.start()
    poller.join(10)

    assert answers == [[]]
