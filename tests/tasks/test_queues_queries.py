"""States of queues."""

import pytest

from conductor_app.tasks.queries.queue_states import list_queues
from tests.builders import simple
from tests.scenario import claim_next, define_workflow, start_run, start_run_of

pytestmark = pytest.mark.django_db


def test_a_queue_counts_pending_and_claimed_attempts(clock):
    define_workflow("order", simple("ship"))
    start_run("order"), start_run("order")
    claim_next("ship")

    [queue] = list_queues()

    assert (queue.name, queue.pending, queue.leased, queue.pollers) == ("ship", 1, 1, 1)


def test_the_queue_with_the_oldest_attempt_comes_first(clock):
    start_run_of(simple("pack"), name="packing")
    started_at = clock.now()
    clock.advance(seconds=60)
    start_run_of(simple("ship"), name="shipping")

    assert [queue.name for queue in list_queues()] == ["pack", "ship"]
    assert list_queues()[0].oldest_at == started_at


def test_pending_attempts_are_counted_up_to_a_limit_per_queue(clock, monkeypatch):
    monkeypatch.setattr("conductor_app.tasks.queries.queue_states.MAX_COUNTED", 2)
    for name, runs in (("ship", 4), ("pack", 2), ("a:b", 1)):
        define_workflow(name, simple(name))
        for _ in range(runs):
            clock.advance(seconds=1)
            start_run(name)

    counts = {queue.name: (queue.counted, queue.has_more) for queue in list_queues()}

    assert counts == {"ship": (2, True), "pack": (2, False), "a:b": (1, False)}


def test_a_queue_with_pending_attempts_and_no_polls_is_neglected(clock):
    claim_next("ship")
    start_run_of(simple("ship"))
    [polled] = list_queues()
    assert not polled.is_neglected(clock.now())

    clock.advance(seconds=61)
    assert polled.is_neglected(clock.now())


def test_a_task_of_a_domain_waits_in_the_queue_of_that_domain(clock):
    start_run_of(simple("ship"), domains={"ship": "eu"})
