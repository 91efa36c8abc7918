"""What happens when a clock has run out (execution §4)."""

import pytest

from conductor_app.core import commands
from tests.builders import fork, plan, policy, step, sub_workflow
from tests.core.simulated_run import RunInMemory

CLOCKS = {"total": "total_seconds", "task": "timeout_seconds", "poll": "poll_seconds"}


def life_with(clock: str, timeout_policy: str, **fields) -> RunInMemory:
    life = RunInMemory(
        plan(
            step(
                "a",
                policy=policy(retries=1, timeout_policy=timeout_policy, lease_seconds=3600, **{CLOCKS[clock]: 30}),
                **fields,
            ),
            step("b"),
        )
    )
    if clock == "task":
        life.claim("a")
    return life


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(
    "fields", [{}, {"optional": True}, {"permissive": True}], ids=["plain", "optional", "permissive"]
)
def test_a_policy_of_timing_out_ends_the_run_whatever_the_task_is(clock, fields):
    life = life_with(clock, "TIME_OUT_WF", **fields)

    assert life.later(29).status == "RUNNING"
    assert life.later(1).status == "TIMED_OUT"
    assert life.statuses == {"a": "TIMED_OUT"}


@pytest.mark.parametrize("clock", ["task", "poll"])
def test_the_timeout_policy_retry_creates_another_attempt(clock):
    life = life_with(clock, "RETRY")

    life.later(30)

    assert life.status == "RUNNING"
    assert (life.statuses, life.task("a").attempt.number) == ({"a": "SCHEDULED"}, 1)


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_timeout_policy_alert_only_ends_no_task(clock):
    life = life_with(clock, "ALERT_ONLY").later(300)

    assert life.status == "RUNNING"
    assert life.completes("a").statuses == {"a": "COMPLETED", "b": "SCHEDULED"}


@pytest.mark.parametrize("timeout_policy", ["RETRY", "TIME_OUT_WF", "ALERT_ONLY"])
def test_an_expired_lease_is_retried_under_every_policy(timeout_policy):
    life = RunInMemory(plan(step("a", policy=policy(retries=1, lease_seconds=20, timeout_policy=timeout_policy))))
    life.claim("a")

    assert life.later(19).statuses == {"a": "IN_PROGRESS"}
    assert life.later(1).statuses == {"a": "SCHEDULED"}

    life.claim("a")
    assert life.later(20).status == "TIMED_OUT"


def test_an_alert_never_hides_a_lost_lease():
    life = RunInMemory(
        plan(step("a", policy=policy(retries=1, lease_seconds=20, timeout_seconds=10, timeout_policy="ALERT_ONLY")))
    )
    life.claim("a")

    life.later(20)

    assert (life.statuses, life.task("a").attempt.number) == ({"a": "SCHEDULED"}, 1)


@pytest.mark.parametrize("first", ["TIME_OUT_WF", "RETRY"])
@pytest.mark.parametrize("second", ["TIME_OUT_WF", "RETRY"])
def test_two_tasks_can_time_out_at_the_same_time(first, second):
    branches = [
        [step(ref, policy=policy(retries=1, poll_seconds=30, timeout_policy=wanted))]
        for ref, wanted in (("a", first), ("b", second))
    ]
    life = RunInMemory(plan(fork(*branches)))

    life.later(30)

    assert life.status == ("RUNNING" if first == second == "RETRY" else "TIMED_OUT")


def test_the_run_s_own_time_ends_it_with_all_that_is_open():
    life = RunInMemory(plan(step("a"), timeoutSeconds=60, timeoutPolicy="TIME_OUT_WF"))

    assert life.later(59).status == "RUNNING"
    assert life.later(1).status == "TIMED_OUT"
    assert life.statuses == {"a": "CANCELED"}
    assert "60 seconds" in life.run.reason


def test_a_paused_run_still_times_out():
    life = RunInMemory(plan(step("a"), timeoutSeconds=60, timeoutPolicy="TIME_OUT_WF"))
    life.do(commands.pause_run)

    assert life.later(60).status == "TIMED_OUT"


def test_resuming_a_run_restarts_its_timeout():
    life = RunInMemory(plan(step("a"), timeoutSeconds=60, timeoutPolicy="TIME_OUT_WF")).later(50)
    life.do(commands.pause_run)
    life.do(commands.resume_run)

    assert life.later(59).status == "RUNNING"
    assert life.later(1).status == "TIMED_OUT"


def test_a_child_run_is_terminated_when_its_task_times_out():
    life = RunInMemory(
        plan(sub_workflow("s", policy=policy(retries=1, timeout_seconds=30, timeout_policy="RETRY"))),
        known={"child": plan(step("x"), name="child")},
    )
    first, life = life.task("s").attempt, life.later(30)

    assert [(message.to, message.subject) for message in life.sent] == [(first.child_id, "terminate")]
    assert len({started.id for started in life.started}) == 2


def test_a_reason_names_seconds_task_and_policy():
    life = life_with("poll", "TIME_OUT_WF").later(30)

    reason = life.task("a").attempt.reason
    assert "30 s" in reason and life.task("a").attempt.id in reason and "TIME_OUT_WF" in reason
    assert life.run.reason == f"Task {life.task('a').attempt.id} failed with status: TIMED_OUT and reason: '{reason}'"
