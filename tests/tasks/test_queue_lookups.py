"""Waiting polls share the lookups of their queues."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Thread, current_thread

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.notifications import Waiter, WaiterRegistry
from conductor_app.runs.models import Attempt
from conductor_app.tasks.commands import queues as queue_commands
from conductor_app.tasks.commands.pollers import LOOKUP_SECONDS, QueueLookups, standalone_queue
from conductor_app.tasks.store import count_claimable, find_next_visible
from tests.builders import policy, simple, step
from tests.clients.wait_until import eventually
from tests.scenario import Scenario

from ..taskcluster.test_groups_parallel import LINUX, create

pytestmark = pytest.mark.django_db

FIRST = 1000.0
A_WHILE = 20


@pytest.fixture
def waiters() -> WaiterRegistry:
    return WaiterRegistry()


@pytest.fixture
def lookups(waiters: WaiterRegistry) -> QueueLookups:
    """Return lookups without a thread of their own, which would look up at the same time as the test."""
    lookups = QueueLookups(waiters)
    lookups._thread = current_thread()
    return lookups


@contextmanager
def waiting(waiters: WaiterRegistry, *queues: str, **options) -> Iterator[list[Waiter]]:
    """Let one waiter wait for each queue, in this order."""
    with ExitStack() as stack:
        all_waiters = [stack.enter_context(waiters.subscribe(queue, **options)) for queue in queues]
        threads = [Thread(target=waiter.wait, args=(A_WHILE,), daemon=True) for waiter in all_waiters]
        for thread in threads:
            thread.start()
        eventually(lambda: all(waiter.is_waiting for waiter in all_waiters))
        yield all_waiters
        with waiters.lock:
            wakes = [waiter.notify() for waiter in all_waiters]
        for wake in wakes:
            wake()
        for thread in threads:
            thread.join()


def woken_of(all_waiters: list[Waiter]) -> list[bool]:
    """Return which waiters have been notified of attempts."""
    return [bool(waiter.unclaimed) for waiter in all_waiters]


def statements_of(look_up: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        look_up()
    return len(captured)


def test_all_waiting_polls_share_one_statement_per_second(waiters, lookups):
    with ExitStack() as stack:
        for number in range(200):
            stack.enter_context(waiters.subscribe(f"type {number % 10}"))

        costs = [statements_of(partial(lookups.look_up, FIRST + seconds)) for seconds in (0, 0.5, 0.9, 1, 1.5, 2)]

    assert costs == [1, 0, 0, 1, 0, 1]


def test_without_waiting_polls_nothing_is_looked_up(lookups):
    assert statements_of(lambda: lookups.look_up(FIRST)) == 0
    assert lookups.look_up(FIRST + LOOKUP_SECONDS) is None


def test_a_queue_without_attempts_is_empty_until_the_next_lookup(waiters, lookups):
    with waiting(waiters, "a"):
        lookups.look_up(FIRST)

        assert [waiters.is_empty("a", FIRST + seconds) for seconds in (0, 0.9, 1.1)] == [True, True, False]


def test_a_queue_is_not_empty_after_an_announcement_for_which_no_poll_waits(waiters, lookups):
    with waiting(waiters, "a"):
        lookups.look_up(FIRST)
    waiters.wake({"a": 1})

    assert not waiters.is_empty("a", FIRST)


def test_a_queue_is_not_empty_after_an_announcement_during_the_lookup(waiters):
    waiters.begin_lookup(["a", "b"])
    waiters.wake({"a": 1})
    waiters.mark_empty("a", FIRST)
    waiters.mark_empty("b", FIRST)

    assert [waiters.is_empty("a", 0), waiters.is_empty("b", 0)] == [False, True]


def test_a_queue_with_an_attempt_that_no_poll_may_claim_is_not_empty(clock, waiters, lookups):
    Scenario(clock, step("a"))
    queue_commands.pause_queue("a", "an operator")

    with waiting(waiters, "a"):
        lookups.look_up(FIRST)

        assert not waiters.is_empty("a", FIRST)


def test_a_queue_with_a_delayed_attempt_is_empty_until_it_becomes_visible(clock, waiters, lookups):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").polls()
    scenario.worker("a").in_progress(callback_seconds=5)
    clock.advance(seconds=4.7)

    with waiting(waiters, "a"):
        lookups.look_up(FIRST)

        assert [waiters.is_empty("a", FIRST + seconds) for seconds in (0.2, 0.4)] == [True, False]


def test_an_attempt_whose_notification_was_lost_wakes_one_poll(clock, waiters, lookups):
    Scenario(clock, step("a"))

    with waiting(waiters, "a", "a", "b") as polls:
        lookups.look_up(FIRST)

        assert woken_of(polls) == [True, False, False]


def test_an_announced_attempt_wakes_no_second_poll(clock, waiters, lookups):
    Scenario(clock, step("a"))

    with waiting(waiters, "a", "a") as polls:
        waiters.wake({"a": 1})
        lookups.look_up(FIRST)

        assert woken_of(polls) == [True, False]


def test_a_delayed_attempt_is_looked_up_when_it_becomes_visible(clock, waiters, lookups):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").polls()
    scenario.worker("a").in_progress(callback_seconds=5)

    with waiting(waiters, "a") as polls:
        clock.advance(seconds=4.7)
        assert lookups.look_up(FIRST) == pytest.approx(FIRST + 0.3)
        clock.advance(seconds=0.3)
        assert woken_of(polls) == [False]
        lookups.look_up(FIRST + 0.3)

        assert woken_of(polls) == [True]


def test_the_next_attempt_of_a_queue_may_have_any_priority(clock):
    delays = {99: 3, 50: 1, 0: 2}
    scenario = Scenario(clock, step("pay"))
    runs = [scenario, scenario.starts("order"), scenario.starts("order")]
    for run, (priority, seconds) in zip(runs, delays.items(), strict=True):
        Attempt.objects.filter(run_id=run.id).update(priority=priority, visible_at=clock.now() + 1000 * seconds)

    assert find_next_visible(["pay", "ship"]) == {"pay": clock.now() + 1000}


LIMITS = {
    "none": ({}, 0),
    "concurrency": ({"concurrent_limit": 2}, 1),
    "reached concurrency": ({"concurrent_limit": 1}, 1),
    "rate": ({"rate_count": 3, "rate_seconds": 60}, 1),
}


@pytest.mark.parametrize(("limits", "claimed"), LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_lookup_finds_as_many_attempts_as_a_poll_can_claim(clock, limits, claimed, count):
    scenario = Scenario(clock, simple("pay"), tasks=[policy("pay", **limits)])
    for _ in range(4):
        scenario.starts("order")
    Attempt.objects.filter(pk=scenario.task("pay").pk).update(name="other", priority=-1)
    scenario.worker("pay").polls(claimed) if claimed else None

    found = count_claimable("pay", clock.now(), count)

    assert found == len(scenario.worker("pay").polls(count))


def test_attempts_that_a_limit_holds_back_wake_no_poll(clock, waiters, lookups):
    scenario = Scenario(clock, simple("pay"), tasks=[policy("pay", concurrent_limit=1)])
    scenario.starts("order")

    with waiting(waiters, "pay", "pay") as polls:
        lookups.look_up(FIRST)

        assert woken_of(polls) == [True, False]


def test_a_paused_queue_wakes_no_poll(clock, waiters, lookups):
    Scenario(clock, step("a"))
    queue_commands.pause_queue("a", "an operator")

    with waiting(waiters, "a") as polls:
        lookups.look_up(FIRST)

        assert woken_of(polls) == [False]


def test_what_a_drained_worker_cannot_claim_wakes_the_next_poll_but_no_poll_twice(clock, waiters, lookups):
    Scenario(clock, step("a"))

    with waiting(waiters, "a", "a") as (drained, other):
        lookups.look_up(FIRST)
        eventually(lambda: not drained.is_waiting)
        assert drained.finish_claim(0) == 1
        Thread(target=drained.wait, args=(A_WHILE,), daemon=True).start()
        eventually(lambda: drained.is_waiting)
        lookups.repeat("a")
        lookups.look_up(FIRST + 0.1)
        eventually(lambda: woken_of([drained, other]) == [False, True])
        eventually(lambda: not other.is_waiting)
        other.finish_claim(0)
        lookups.repeat("a")
        lookups.look_up(FIRST + 0.2)

        assert woken_of([drained, other]) == [False, False]


def test_a_standalone_task_wakes_a_worker_of_its_queue_and_no_worker_of_a_task_type(clock, waiters, lookups):
    create(clock)

    with waiting(waiters, LINUX, standalone_queue(LINUX)) as polls:
        lookups.look_up(FIRST)

        assert woken_of(polls) == [False, True]
