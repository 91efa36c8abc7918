"""Cause of a run's state, as one sentence."""

import pytest

from conductor_app.explanations.cause import failure_reasons, run_cause
from conductor_app.runs.commands import control, repair
from conductor_app.tasks.queries.waiting import verdicts_on
from tests.builders import human, join, simple, step_of, sub_workflow, terminate, wait
from tests.scenario import (
    claim_and_report,
    claim_next,
    define_task,
    define_workflow,
    newest_attempt_of,
    reload_run,
    start_run,
    start_run_of,
)

pytestmark = pytest.mark.django_db


def read_cause(run):
    return run_cause(reload_run(run)).sentence


def test_a_failed_run_names_the_task_the_attempt_and_the_first_line_of_the_reason(clock):
    define_task("charge", retryCount=1, retryDelaySeconds=0)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="timeout")
    claim_and_report("charge", "FAILED", reason="502 from gateway\nTraceback (most recent call last)")

    assert read_cause(run) == "Failed at `charge`, attempt 2 of 2: 502 from gateway"


def test_a_run_that_waits_for_its_sub_workflow_says_what_that_waits_for(clock):
    define_workflow("payment", human("approve"))
    run = start_run_of(sub_workflow("pay", "payment"))

    assert (
        read_cause(run)
        == "Waiting: `pay` is waiting for its sub-workflow, which is at `approve`: human task, for anyone"
    )


def test_a_retry_by_hand_beyond_the_policy_is_named_as_such(clock):
    define_task("charge", retryCount=0)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    repair.retry(run.pk, "olga")
    claim_and_report("charge", "FAILED", reason="no funds")

    assert read_cause(run) == "Failed at `charge`, attempt 2, retried by hand: no funds"


def test_attempts_after_a_rerun_are_counted_from_the_rerun(clock):
    define_task("charge", retryCount=1, retryDelaySeconds=0)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    claim_and_report("charge", "FAILED", reason="no funds")
    repair.rerun(run.pk, "olga", attempt_id=newest_attempt_of(run, "charge").pk)
    claim_and_report("charge", "FAILED", reason="no funds")
    claim_and_report("charge", "FAILED", reason="no funds")

    assert "attempt 3, 2 of 2 since the rerun" in read_cause(run), read_cause(run)


def test_a_failure_without_a_reason_is_reported_as_such(clock):
    define_task("charge", retryCount=0)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED")

    assert read_cause(run) == "Failed at `charge`, attempt 1 of 1: no reason given"


@pytest.mark.parametrize("status", ["FAILED", "TERMINATED"])
def test_a_terminate_step_is_the_cause_with_its_reason(clock, status):
    run = start_run_of(terminate("no", status, "The reviewer refused the claim"))

    assert read_cause(run) == "Terminated by step `no`: The reviewer refused the claim"
    assert failure_reasons([reload_run(run)]) == {run.pk: ("no", "The reviewer refused the claim")}


def test_an_operator_who_terminates_a_run_is_its_cause(clock):
    define_task("charge", retryCount=0)
    run = start_run_of(simple("charge"))
    control.terminate_run(run.pk, "olga", "wrong customer")

    assert read_cause(run) == "Terminated by olga 0 s ago: wrong customer"


@pytest.mark.django_db(transaction=True)
def test_a_terminate_step_of_a_sub_workflow_is_named_with_its_reason(clock):
    define_workflow("review", terminate("no", "FAILED", "The reviewer refused the claim"))
    run = start_run_of(sub_workflow("ask", "review", version=1))

    assert read_cause(run) == (
        "Failed at `ask`, attempt 1 of 1: sub-workflow terminated by step `no`: The reviewer refused the claim"
    )


@pytest.mark.django_db(transaction=True)
def test_a_failed_sub_workflow_is_followed_down_to_the_task_that_failed(clock):
    define_task("charge", retryCount=0)
    define_workflow("payment", simple("charge"))
    run = start_run_of(sub_workflow("pay", "payment", version=1))
    claim_and_report("charge", "FAILED", reason="no funds")

    assert read_cause(run) == (
        "Failed at `pay`, attempt 1 of 1: sub-workflow failed at `charge`, attempt 1 of 1: no funds"
    )


def test_a_pending_retry_states_its_time_and_the_previous_failure(clock):
    define_task("charge", retryCount=3, retryDelaySeconds=5)
    run = start_run_of(simple("charge"))
    claim_and_report("charge", "FAILED", reason="no funds")
    clock.advance(seconds=0.8)

    assert read_cause(run) == "Waiting: retry of `charge` in 4.2 s (attempt 2 of 4); previous error: no funds"


def test_an_unpolled_task_is_the_cause_of_waiting(clock):
    claim_next("ship")
    clock.advance(seconds=720)
    run = start_run_of(simple("ship"))

    assert read_cause(run) == "Waiting: `ship` — no worker has polled queue `ship` for 12 min"


def test_the_next_task_of_a_polled_queue_states_its_waiting_time(clock):
    claim_next("ship")
    run = start_run_of(simple("ship"))
    clock.advance(seconds=3)

    assert read_cause(run) == "Waiting: `ship` — queued in `ship` for 3.0 s"


def test_a_task_with_a_worker_names_the_worker(clock):
    run = start_run_of(simple("ship"))
    claim_next("ship", worker="w7")
    clock.advance(seconds=4)

    assert read_cause(run).startswith("Running: `ship` on worker `w7` for 4.0 s")


def test_a_human_task_waits_for_a_person(clock):
    run = start_run_of(human("approve"))
    clock.advance(seconds=60)

    assert read_cause(run) == "Waiting: human task `approve` pending for 1 min, for anyone"


def test_a_wait_states_its_remaining_time(clock):
    run = start_run_of(wait("nap", duration="1 hour"))
    clock.advance(seconds=600)

    assert read_cause(run) == "Waiting: `nap` is waiting until 13:00, 50 min left"


def test_a_fork_names_the_blocking_branch_and_counts_the_others(clock):
    fork = step_of("FORK_JOIN", "fork", forkTasks=[[simple("pack")], [simple("label")]])
    run = start_run_of(fork, join("join", ["pack", "label"]))
    claim_next("pack")

    assert read_cause(run) == "Waiting: `label` — no worker has ever polled queue `label` · 2 more active tasks"


def test_a_rate_limited_run_states_its_limit(clock):
    define_workflow("order", simple("ship"), rateLimitConfig={"rateLimitKey": "all", "concurrentExecLimit": 1})
    start_run("order")

    held = start_run("order")

    gate = verdicts_on(newest_attempt_of(held, "ship"), clock.now())[0]
    assert not gate.is_open and read_cause(held).removeprefix("Waiting: ").lower() == gate.sentence.lower()


def test_a_paused_run_states_who_paused_it_why_and_which_tasks_are_claimed(clock):
    run = start_run_of(simple("ship"))
    claim_next("ship")
    control.pause_run(run.pk, "bob", "stock count")
    clock.advance(seconds=180)

    assert read_cause(run) == "Paused by bob 3 min ago: stock count · 1 task still in progress"


def test_a_terminated_run_states_who_ended_it_and_why(clock):
    run = start_run_of(simple("ship"))
    control.terminate_run(run.pk, "bob", "ordered twice")
    clock.advance(seconds=2)

    assert read_cause(run) == "Terminated by bob 2 s ago: ordered twice"


def test_a_completed_run_states_its_duration(clock):
    run = start_run_of(simple("ship"))
    clock.advance(seconds=3.2)
    claim_and_report("ship")

    assert read_cause(run) == "Completed in 3.2 s"


def test_the_failures_of_a_list_are_read_in_one_query(clock, django_assert_num_queries):
    define_task("charge", retryCount=0)
    failed = [start_run_of(simple("charge")) for _ in range(3)]
    for number in range(3):
        claim_and_report("charge", "FAILED", reason=f"reason {number}")
    listed = [reload_run(run) for run in failed]

    with django_assert_num_queries(1):
        found = failure_reasons(listed)

    assert sorted(found.values()) == [("charge", f"reason {number}") for number in range(3)]
