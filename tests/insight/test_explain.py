"""Why an attempt waits: the page and the claim ask the same gates."""

import pytest

from conductor_app.engine.runs import run_commands
from conductor_app.insight.queues.gate_verdicts import closed_gates, explain_attempt

from .situations import (
    claim_and_report,
    claim_next,
    define_task,
    define_workflow,
    newest_attempt_of,
    start_run,
    start_run_of,
    step,
)

pytestmark = pytest.mark.django_db


def obstacles(attempt):
    return {verdict.gate: verdict.sentence for verdict in closed_gates(explain_attempt(attempt.pk))}


def test_an_attempt_that_nobody_ever_polled_for_says_so(clock):
    run = start_run_of(step("ship"))

    assert obstacles(newest_attempt_of(run, "ship")) == {"polled": "No worker has ever polled queue `ship`."}


def test_a_queue_without_a_poll_for_a_minute_has_nobody(clock):
    claim_next("ship")
    clock.advance(seconds=720)
    run = start_run_of(step("ship"))

    assert obstacles(newest_attempt_of(run, "ship")) == {"polled": "No worker has polled queue `ship` for 12 min."}


def test_a_retry_says_when_its_delay_is_over(clock):
    define_task("charge", retryCount=1, retryDelaySeconds=10)
    run = start_run_of(step("charge"))
    claim_and_report("charge", "FAILED")
    clock.advance(seconds=4)

    assert obstacles(newest_attempt_of(run, "charge")) == {"due": "The task is delayed for another 6.0 s."}


def test_a_full_limit_counts_those_that_hold_it(clock):
    define_task("ship", concurrentExecLimit=1)
    define_workflow("order", step("ship"))
    start_run("order"), start_run("order")
    first = claim_next("ship")
    waiting = newest_attempt_of(start_run("order"), "ship")

    assert first is not None
    assert "1 of 1 tasks of this name" in obstacles(waiting)["concurrency"]


def test_a_used_up_rate_says_how_many_starts_in_which_window(clock):
    define_task("ship", rateLimitPerFrequency=1, rateLimitFrequencyInSeconds=60)
    define_workflow("order", step("ship"))
    start_run("order")
    claim_and_report("ship")
    waiting = newest_attempt_of(start_run("order"), "ship")

    assert "1 of 1 starts in 60 s" in obstacles(waiting)["rate"]


def test_a_limit_that_was_registered_later_holds_for_attempts_that_wait_already(clock):
    define_task("ship")
    define_workflow("order", step("ship"))
    start_run("order")
    clock.advance(seconds=1)
    waiting = newest_attempt_of(start_run("order"), "ship")
    define_task("ship", concurrentExecLimit=1)
    claim_next("ship")

    assert "concurrency" in obstacles(waiting)


def test_a_held_run_names_the_workflows_limit(clock):
    define_workflow("order", step("ship"), rateLimitConfig={"rateLimitKey": "all", "concurrentExecLimit": 1})
    start_run("order")
    held = start_run("order")

    assert held.is_held
    assert "limit of parallel runs" in obstacles(newest_attempt_of(held, "ship"))["run_slot"]


def test_a_paused_run_is_said_but_keeps_no_attempt_back(clock):
    claim_next("ship")
    run = start_run_of(step("ship"))
    run_commands.pause_run(run.pk, "ann")

    waiting = newest_attempt_of(run, "ship")
    sentences = [verdict.sentence for verdict in explain_attempt(waiting.pk)]

    assert any("The run is paused" in sentence for sentence in sentences)
    assert obstacles(waiting) == {}
    assert claim_next("ship").pk == waiting.pk


def test_what_every_gate_lets_pass_is_handed_out_and_what_one_shuts_is_not(clock):
    define_task("ship", concurrentExecLimit=1)
    define_workflow("order", step("ship"))
    claim_next("ship")
    first = newest_attempt_of(start_run("order"), "ship")
    clock.advance(seconds=1)
    second = newest_attempt_of(start_run("order"), "ship")

    assert obstacles(first) == {}
    assert claim_next("ship").pk == first.pk
    assert list(obstacles(second)) == ["concurrency"]
    assert claim_next("ship") is None


def test_an_attempt_that_does_not_wait_needs_no_explanation(clock):
    run = start_run_of(step("ship"))
    claim_and_report("ship")

    assert explain_attempt(newest_attempt_of(run, "ship").pk) == []
    assert explain_attempt("no-such-attempt") == []
