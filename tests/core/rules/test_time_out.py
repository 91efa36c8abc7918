"""Expired timers of tasks and runs (execution §4)."""

import pytest

from conductor_app.core import commands
from tests.builders import fork, plan, policy, step, step_of, sub_workflow
from tests.core.simulated_run import RunInMemory

TIMEOUT_FIELDS = {"total": "total_seconds", "task": "timeout_seconds", "poll": "poll_seconds"}


def start_run_with_timeout(timeout: str, timeout_policy: str, **fields) -> RunInMemory:
    run = RunInMemory(
        plan(
            step(
                "a",
                policy=policy(
                    retries=1, timeout_policy=timeout_policy, lease_seconds=3600, **{TIMEOUT_FIELDS[timeout]: 30}
                ),
                **fields,
            ),
            step("b"),
        )
    )
    if timeout == "task":
        run.claim("a")
    return run


@pytest.mark.parametrize("timeout", TIMEOUT_FIELDS)
@pytest.mark.parametrize(
    "fields", [{}, {"optional": True}, {"permissive": True}], ids=["plain", "optional", "permissive"]
)
def test_the_timeout_policy_time_out_wf_ends_the_run_even_for_optional_tasks(timeout, fields):
    run = start_run_with_timeout(timeout, "TIME_OUT_WF", **fields)

    assert run.later(29).status == "RUNNING"
    assert run.later(1).status == "TIMED_OUT"
    assert run.statuses == {"a": "TIMED_OUT"}


@pytest.mark.parametrize("timeout", ["task", "poll"])
def test_the_timeout_policy_retry_creates_another_attempt(timeout):
    run = start_run_with_timeout(timeout, "RETRY")

    run.later(30)

    assert run.status == "RUNNING"
    assert (run.statuses, run.task("a").attempt.number) == ({"a": "SCHEDULED"}, 1)


@pytest.mark.parametrize("timeout", TIMEOUT_FIELDS)
def test_the_timeout_policy_alert_only_ends_no_task(timeout):
    run = start_run_with_timeout(timeout, "ALERT_ONLY").later(300)

    assert run.status == "RUNNING"
    assert run.completes("a").statuses == {"a": "COMPLETED", "b": "SCHEDULED"}


@pytest.mark.parametrize("timeout_policy", ["RETRY", "TIME_OUT_WF", "ALERT_ONLY"])
def test_an_expired_lease_is_retried_under_every_policy(timeout_policy):
    run = RunInMemory(plan(step("a", policy=policy(retries=1, lease_seconds=20, timeout_policy=timeout_policy))))
    run.claim("a")

    assert run.later(19).statuses == {"a": "IN_PROGRESS"}
    assert run.later(1).statuses == {"a": "SCHEDULED"}

    run.claim("a")
    assert run.later(20).status == "TIMED_OUT"


def test_an_expired_lease_is_retried_after_an_alert():
    run = RunInMemory(
        plan(step("a", policy=policy(retries=1, lease_seconds=20, timeout_seconds=10, timeout_policy="ALERT_ONLY")))
    )
    run.claim("a")

    run.later(20)

    assert (run.statuses, run.task("a").attempt.number) == ({"a": "SCHEDULED"}, 1)


@pytest.mark.parametrize("first", ["TIME_OUT_WF", "RETRY"])
@pytest.mark.parametrize("second", ["TIME_OUT_WF", "RETRY"])
def test_two_tasks_can_time_out_at_the_same_time(first, second):
    branches = [
        [step(ref, policy=policy(retries=1, poll_seconds=30, timeout_policy=wanted))]
        for ref, wanted in (("a", first), ("b", second))
    ]
    run = RunInMemory(plan(fork(*branches)))

    run.later(30)

    assert run.status == ("RUNNING" if first == second == "RETRY" else "TIMED_OUT")


def test_the_timeout_of_a_run_ends_it_and_cancels_its_open_tasks():
    run = RunInMemory(plan(step("a"), timeoutSeconds=60, timeoutPolicy="TIME_OUT_WF"))

    assert run.later(59).status == "RUNNING"
    assert run.later(1).status == "TIMED_OUT"
    assert run.statuses == {"a": "CANCELED"}
    assert "60 seconds" in run.snapshot.reason


def test_a_paused_run_still_times_out():
    run = RunInMemory(plan(step("a"), timeoutSeconds=60, timeoutPolicy="TIME_OUT_WF"))
    run.apply(commands.pause_run)

    assert run.later(60).status == "TIMED_OUT"


def test_resuming_a_run_restarts_its_timeout():
    run = RunInMemory(plan(step("a"), timeoutSeconds=60, timeoutPolicy="TIME_OUT_WF")).later(50)
    run.apply(commands.pause_run)
    run.apply(commands.resume_run)

    assert run.later(59).status == "RUNNING"
    assert run.later(1).status == "TIMED_OUT"


def test_a_child_run_is_terminated_when_its_task_times_out():
    run = RunInMemory(
        plan(sub_workflow("s", policy=policy(retries=1, timeout_seconds=30, timeout_policy="RETRY"))),
        known={"child": plan(step("x"), name="child")},
    )
    first, run = run.task("s").attempt, run.later(30)

    assert [(message.to, message.subject) for message in run.sent_messages] == [(first.child_id, "terminate")]
    assert len({started.id for started in run.started}) == 2


def test_the_reason_of_a_timeout_names_seconds_task_and_policy():
    run = start_run_with_timeout("poll", "TIME_OUT_WF").later(30)

    reason = run.task("a").attempt.reason
    assert "30 s" in reason and run.task("a").attempt.id in reason and "TIME_OUT_WF" in reason
    assert (
        run.snapshot.reason == f"Task {run.task('a').attempt.id} failed with status: TIMED_OUT and reason: '{reason}'"
    )


def test_the_poll_timeout_counts_again_after_a_lost_lease_of_a_built_in_worker():
    request = {"http_request": {"uri": "http://example.com"}}
    run = RunInMemory(plan(step_of("HTTP", "a", inputs=request, policy=policy(poll_seconds=600, lease_seconds=60))))
    run.claim("a")

    assert run.later(60).statuses == {"a": "SCHEDULED"}
    assert run.later(599).status == "RUNNING"
    assert run.later(1).status == "TIMED_OUT"
