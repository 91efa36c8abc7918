"""Long polls: which of them claims, and what becomes of announced attempts that it does not claim."""

from collections.abc import Callable
from contextlib import ExitStack
from threading import Thread
from time import monotonic

import pytest
from django.db import connection

from conductor_app import notifications
from conductor_app.notifications import WaitingClient, wait_in_thread
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Attempt
from conductor_app.tasks.commands.claims import LongPoll, begin_poll, claim_tasks
from tests.builders import definition, dynamic_fork, policy, step
from tests.clients.wait_until import eventually
from tests.scenario import Scenario, register_definitions

A_MINUTE_MS = 60_000


def count_asleep() -> int:
    """Return the number of polls that wait, and are not claiming."""
    return sum(waiter.is_waiting for waiters in notifications.WAITERS.value._queues.values() for waiter in waiters)


class PollInThread:
    """A long poll in a thread of its own, which waits for a minute."""

    def __init__(self, take: Callable[[], list[str]], count: int) -> None:
        self.claims, self.result, self.has_left = 0, [], False
        self._take, self._thread = take, Thread(target=self._poll, args=(count,), daemon=True)
        before = count_asleep()
        self._thread.start()
        eventually(lambda: count_asleep() > before)

    def _poll(self, count: int) -> None:
        client = WaitingClient(lambda: self.has_left)
        self.result = wait_in_thread(begin_poll(LongPoll("pay", A_MINUTE_MS, count, client), self._claim))
        connection.close()

    def _claim(self) -> list[str]:
        self.claims += 1
        return self._take()

    def finish(self) -> list[str]:
        """Wait for the end of the poll and return its result."""
        self._thread.join(10)
        return self.result

    def disconnect(self) -> None:
        """End the poll as if its client had disconnected."""
        self.has_left = True
        notifications.WAITERS.value.wake_disconnected()
        self._thread.join(10)


@pytest.fixture
def attempts() -> list[str]:
    """Return the attempts that can be claimed."""
    return []


@pytest.fixture
def poll(attempts: list[str], transactional_db: None):
    """Return a function that starts a poll, and end all polls after the test."""
    started: list[PollInThread] = []

    def start_poll(is_drained: bool = False, count: int = 1) -> PollInThread:
        def take() -> list[str]:
            return [] if is_drained else [attempts.pop() for _ in range(min(count, len(attempts)))]

        started.append(PollInThread(take, count))
        return started[-1]

    yield start_poll
    for each in started:
        each.disconnect()


def test_a_poll_beyond_the_limit_of_waiting_threads_returns_immediately(transactional_db, settings):
    settings.CONDUCTOR_MAX_WAITING_THREADS = 0
    answers = []

    def poll() -> None:
        answers.append(claim_tasks("nothing", wait_ms=A_MINUTE_MS))
        connection.close()

    poller = Thread(target=poll, daemon=True)
    poller.start()
    poller.join(10)

    assert answers == [[]]


def test_a_poll_that_holds_no_thread_waits_for_a_second_beyond_the_limit(settings):
    settings.CONDUCTOR_MAX_WAITING_THREADS = settings.CONDUCTOR_MAX_WAITING_POLLS = 0
    poll = LongPoll("pay", A_MINUTE_MS, client=WaitingClient(holds_thread=False))
    steps = begin_poll(poll, list)

    wait = next(steps)

    assert 0 < wait.seconds <= 1
    steps.close()


def test_no_attempt_is_claimed_for_a_disconnected_worker():
    taken = []

    for wait_ms in (0, A_MINUTE_MS):
        poll = LongPoll("pay", wait_ms, client=WaitingClient(lambda: True))
        assert wait_in_thread(begin_poll(poll, lambda: taken.append("pay") or ["pay"])) == []

    assert taken == []


def test_a_notification_for_a_disconnected_worker_goes_to_the_next_waiter(db):
    answers, waiters = iter([False, True]), []
    with ExitStack() as others:

        def another_comes_and_so_does_work():
            waiters.append(others.enter_context(notifications.subscribe("pay")))
            notifications.announce(["pay"])
            return []

        poll = LongPoll("pay", A_MINUTE_MS, client=WaitingClient(lambda: next(answers)))
        assert wait_in_thread(begin_poll(poll, another_comes_and_so_does_work)) == []
        assert [waiter.was_notified for waiter in waiters] == [True]


def test_one_announced_task_lets_one_of_many_polls_claim(poll, attempts):
    polls = [poll() for _ in range(20)]
    before = sum(each.claims for each in polls)

    attempts.append("attempt")
    notifications.announce(["pay"])
    eventually(lambda: not attempts)

    assert sum(each.claims for each in polls) == before + 1


def test_a_poll_of_a_queue_that_is_known_to_be_empty_claims_only_when_it_is_woken(poll, attempts):
    notifications.WAITERS.value.begin_lookup(["pay"])
    notifications.WAITERS.value.mark_empty("pay", until=monotonic() + 60)
    waiting = poll()
    assert waiting.claims == 0

    attempts.append("attempt")
    notifications.announce(["pay"])

    assert waiting.finish() == ["attempt"]
    assert waiting.claims == 1


def test_a_short_poll_always_claims(attempts):
    notifications.WAITERS.value.begin_lookup(["pay"])
    notifications.WAITERS.value.mark_empty("pay", until=monotonic() + 60)

    assert wait_in_thread(begin_poll(LongPoll("pay", 100), lambda: ["attempt"])) == ["attempt"]


def test_polls_for_several_tasks_take_up_to_their_count(poll, attempts):
    polls = [poll(count=3) for _ in range(3)]

    attempts += ["a", "b", "c", "d"]
    notifications.announce(["pay"] * 4)
    eventually(lambda: not attempts)

    eventually(lambda: sum(len(each.result) for each in polls) == 4)
    assert sorted(len(each.result) for each in polls) == [0, 1, 3]


def test_a_task_that_a_woken_poll_cannot_claim_goes_to_the_next_poll(poll, attempts):
    register_definitions(definition(step("pay")))
    start_run(StartRequest("order"), "a client")
    drained, other = poll(is_drained=True), poll()

    attempts.append("attempt")
    notifications.announce(["pay"])

    assert other.finish() == ["attempt"]
    assert drained.claims > 1


def test_a_task_whose_notification_was_lost_is_claimed(poll, attempts):
    register_definitions(definition(step("another type")))
    waiting = poll()

    attempts.append("attempt")
    run_id = start_run(StartRequest("order"), "a client")
    Attempt.objects.filter(run_id=run_id).update(queue="pay")

    assert waiting.finish() == ["attempt"]


def test_each_task_of_a_fan_out_wakes_a_poll(clock, db):
    inputs = {"forkTaskInputs": [1, 2, 3], "forkTaskName": "pay"}
    with ExitStack() as stack:
        polls = [stack.enter_context(notifications.subscribe("pay")) for _ in range(4)]
        Scenario(clock, *dynamic_fork(inputs=inputs, optional=False), tasks=[policy("pay")])

        assert [poll.was_notified for poll in polls] == [True, True, True, False]
