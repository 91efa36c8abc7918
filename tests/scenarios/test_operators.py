"""Commands of operators: pause, resume, terminate and retry (execution §7.2, §7.3)."""

import pytest

from conductor_app.core.errors import Conflict
from tests.builders import fork, human, loop, policy, step, switch, wait
from tests.scenario import Scenario


def test_a_paused_run_schedules_no_tasks_until_it_is_resumed(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.pause()

    scenario.worker("a").completes()
    assert (scenario.status, scenario.statuses) == ("PAUSED", {"a": "COMPLETED"})

    scenario.resume()
    assert scenario.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}


def test_a_paused_run_lets_its_waits_pass_when_it_is_resumed(clock):
    scenario = Scenario(clock, wait("pause", duration="10 s"), step("a"))
    scenario.pause()
    assert scenario.later(20).statuses == {"pause": "IN_PROGRESS"}

    scenario.resume()

    assert scenario.statuses == {"pause": "COMPLETED", "a": "SCHEDULED"}


def test_a_failure_in_a_paused_run_is_retried_after_it_is_resumed(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=1)))
    scenario.pause()
    scenario.worker("a").fails()

    assert scenario.queue("a") == []
    scenario.resume()
    assert scenario.queue("a") == ["a, attempt 2"]


def test_pausing_twice_is_pausing(clock):
    scenario = Scenario(clock, step("a"))
    scenario.pause()
    scenario.pause()

    assert scenario.status == "PAUSED"


@pytest.mark.parametrize("act", ["resume", "retry"])
def test_a_running_run_rejects_actions_for_ended_runs(clock, act):
    scenario = Scenario(clock, step("a"))

    with pytest.raises(Conflict):
        getattr(scenario, act)()


@pytest.mark.parametrize("act", ["pause", "resume", "retry", "terminate"])
def test_a_completed_run_rejects_actions_for_active_runs(clock, act):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").completes()

    with pytest.raises(Conflict):
        getattr(scenario, act)()


def test_terminating_cancels_open_tasks(clock):
    scenario = Scenario(clock, *fork([step("a")], [human("b")]))
    scenario.worker("a").polls()

    scenario.terminate("enough")

    assert (scenario.status, scenario.reason) == ("TERMINATED", "enough")
    assert scenario.statuses == {"fork_join": "COMPLETED", "a": "CANCELED", "b": "CANCELED", "join": "CANCELED"}
    assert scenario.worker("a").completes() is False


def test_terminating_a_failed_run_only_rewrites_its_status(clock):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").fails()

    scenario.terminate("enough")

    assert (scenario.status, scenario.statuses) == ("TERMINATED", {"a": "FAILED"})


def test_a_retry_repeats_failed_tasks_and_those_canceled_with_them(clock):
    scenario = Scenario(clock, *fork([step("a"), step("c")], [step("b")]), step("d"))
    scenario.worker("a").fails()
    assert scenario.statuses == {"fork_join": "COMPLETED", "a": "FAILED", "b": "CANCELED", "join": "CANCELED"}

    scenario.retry()

    assert scenario.statuses == {"fork_join": "COMPLETED", "a": "SCHEDULED", "b": "SCHEDULED", "join": "IN_PROGRESS"}
    assert (scenario.reason, scenario.row.ended_at) == ("", None)
    for task_type in ("b", "a", "c", "d"):
        scenario.worker(task_type).completes()
    assert scenario.status == "COMPLETED"


def test_a_retry_grants_exactly_one_attempt(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=1)))
    scenario.worker("a").fails()
    scenario.worker("a").fails()
    scenario.retry()

    assert scenario.queue("a") == ["a, attempt 3"]
    scenario.worker("a").fails()
    assert scenario.status == "FAILED"


def test_a_retry_continues_a_loop_in_the_failed_iteration(clock):
    scenario = Scenario(clock, loop("l", step("a"), step("b"), times=3))
    for task_type in ("a", "b", "a"):
        scenario.worker(task_type).completes()
    scenario.worker("b").fails()

    scenario.retry()
    assert (scenario.statuses["l"], scenario.statuses["b__2"]) == ("IN_PROGRESS", "SCHEDULED")

    for task_type in ("b", "a", "b"):
        scenario.worker(task_type).completes()
    assert scenario.status == "COMPLETED"


def test_a_retry_does_not_repeat_tasks_completed_with_errors(clock):
    scenario = Scenario(clock, step("a", optional=True), step("b"))
    scenario.worker("a").fails()
    scenario.worker("b").fails()

    scenario.retry()

    assert scenario.statuses == {"a": "COMPLETED_WITH_ERRORS", "b": "SCHEDULED"}


def test_a_retry_of_a_join_failed_by_a_permissive_branch_joins_again(clock):
    scenario = Scenario(clock, *fork([step("a", permissive=True)], [step("b")]))
    scenario.worker("a").fails()
    scenario.worker("b").completes()
    assert (scenario.status, scenario.statuses["join"]) == ("FAILED", "FAILED")

    scenario.retry()
    assert scenario.statuses["join"] == "IN_PROGRESS"

    scenario.worker("a").completes()
    assert scenario.status == "COMPLETED"


def test_a_timed_out_run_without_failed_tasks_continues_with_a_new_timeout(clock):
    scenario = Scenario(clock, step("a"), timeoutSeconds=10, timeoutPolicy="TIME_OUT_WF")
    scenario.at(10)
    assert scenario.status == "TIMED_OUT"

    scenario.retry()

    assert scenario.at(19).status == "RUNNING"
    assert scenario.at(20).status == "TIMED_OUT"


def test_a_retry_does_not_evaluate_a_switch_again(clock):
    scenario = Scenario(clock, switch("way", {"x": [step("a")]}, [step("b")]), input={"way": "x"})
    scenario.worker("a").fails()

    scenario.retry()
    scenario.worker("a").completes()

    assert scenario.status == "COMPLETED"
    assert scenario.attempts("way") == ["COMPLETED"]


def test_a_retried_permissive_task_does_not_repeat_later_steps(clock):
    scenario = Scenario(clock, step("a", permissive=True), step("b"), step("c"))
    scenario.worker("a").fails()
    scenario.worker("b").completes()
    scenario.worker("c").completes()
    assert scenario.status == "FAILED"

    scenario.retry()
    assert scenario.statuses == {"a": "SCHEDULED", "b": "COMPLETED", "c": "COMPLETED"}
    scenario.worker("a").completes()

    assert scenario.status == "COMPLETED"
    assert scenario.attempts("b") == ["COMPLETED"]
