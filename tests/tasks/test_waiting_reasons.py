"""Reasons why an attempt waits: the page evaluates the same gates as the claim."""

import pytest

from conductor_app.runs.commands import control
from conductor_app.tasks.queries.waiting import closed_gates
from tests.builders import simple
from tests.scenario import (
    claim_and_report,
    claim_next,
    define_task,
    define_workflow,
    explain_attempt,
    newest_attempt_of,
    start_run,
    start_run_of,
)

pytestmark = pytest.mark.django_db


def closed_sentences(attempt):
    return {verdict.gate: verdict.sentence for verdict in closed_gates(explain_attempt(attempt.pk))}


def test_an_attempt_of_a_never_polled_queue_states_that(clock):
    run = start_run_of(simple("ship"))

    assert closed_sentences(newest_attempt_of(run, "ship")) == {"polled": "No worker has ever polled queue `ship`."}


def test_a_queue_without_a_poll_for_a_minute_has_no_workers(clock):
    claim_next("ship")
    clock.advance(seconds=720)
    run = start_run_of(simple("ship"))

    assert closed_sentences(newest_attempt_of(run, "ship")) == {
        "polled": "No worker has polled queue `ship` for 12 min."
    }


def test_a_retry_states_the_end_of_its_delay(clock):
    define_task("charge", retryCount=1, retryDelaySeconds=10)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED")
    clock.advance(seconds=4)

    assert closed_sentences(newest_attempt_of(run, "charge")) == {"due": "The task is delayed for another 6.0 s."}


def test_a_full_limit_states_the_number_of_claimed_tasks(clock):
    define_task("ship", concurrentExecLimit=1)
    define_workflow("order", simple("ship"))
    start_run("order"), start_run("order")
    first = claim_next("ship")
    waiting = newest_attempt_of(start_run("order"), "ship")

    assert first is not None
    assert "1 of 1 tasks of this name" in closed_sentences(waiting)["concurrency"]


def test_an_exhausted_rate_states_its_claims_and_window(clock):
    define_task("ship", rateLimitPerFrequency=1, rateLimitFrequencyInSeconds=60)
    define_workflow("order", simple("ship"))
    start_run("order")
    claim_and_report("ship")
    waiting = newest_attempt_of(start_run("order"), "ship")

    assert "1 of 1 starts in 60 s" in closed_sentences(waiting)["rate"]


def test_a_later_limit_applies_to_pending_attempts(clock):
    define_task("ship")
    define_workflow("order", simple("ship"))
    start_run("order")
    clock.advance(seconds=1)
    waiting = newest_attempt_of(start_run("order"), "ship")
    define_task("ship", concurrentExecLimit=1)
    claim_next("ship")

    assert "concurrency" in closed_sentences(waiting)


def test_a_rate_limited_run_names_the_limit_of_its_workflow(clock):
    define_workflow("order", simple("ship"), rateLimitConfig={"rateLimitKey": "all", "concurrentExecLimit": 1})
    start_run("order")
    held = start_run("order")

    assert held.is_held
    assert "limit of parallel runs" in closed_sentences(newest_attempt_of(held, "ship"))["run_slot"]


def test_a_paused_run_is_reported_without_blocking_attempts(clock):
    claim_next("ship")
    run = start_run_of(simple("ship"))
    control.pause_run(run.pk, "ann")

    waiting = newest_attempt_of(run, "ship")
    sentences = [verdict.sentence for verdict in explain_attempt(waiting.pk)]

    assert any("The run is paused" in sentence for sentence in sentences)
    assert closed_sentences(waiting) == {}
    assert claim_next("ship").id == waiting.pk


def test_an_attempt_is_dispatched_only_if_every_gate_is_open(clock):
    define_task("ship", concurrentExecLimit=1)
    define_workflow("order", simple("ship"))
    claim_next("ship")
    first = newest_attempt_of(start_run("order"), "ship")
    clock.advance(seconds=1)
    second = newest_attempt_of(start_run("order"), "ship")

    assert closed_sentences(first) == {}
    assert claim_next("ship").id == first.id
    assert list(closed_sentences(second)) == ["concurrency"]
    assert claim_next("ship") is None


def test_a_claimed_attempt_has_no_explanation(clock):
    run = start_run_of(simple("ship"))
    claim_and_report("ship")

    assert explain_attempt(newest_attempt_of(run, "ship").pk) == []
    assert explain_attempt("no-such-attempt") == []
