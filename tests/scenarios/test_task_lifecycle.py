"""Timelines of the life cycle of a task, to the second."""

from tests.builders import policy, step
from tests.scenario import Scenario


def test_a_failed_task_is_rescheduled_at_once_and_pollable_after_its_delay(clock):
    scenario = Scenario(clock, step("t1", policy=policy(retries=1, delay_seconds=5)))
    scenario.worker("t1").polls()

    scenario.at(10)
    scenario.worker("t1").fails()

    assert scenario.attempts("t1") == ["FAILED", "SCHEDULED"]
    assert scenario.seconds(scenario.task("t1").scheduled_at) == 10
    assert scenario.at(14.999).queue("t1") == []
    assert scenario.at(15).queue("t1") == ["t1, attempt 2"]


def test_an_unpolled_task_times_out_after_its_poll_timeout(clock):
    scenario = Scenario(clock, step("t1", policy=policy(poll_seconds=60)))

    assert scenario.at(59.999).statuses == {"t1": "SCHEDULED"}
    assert scenario.at(60).statuses == {"t1": "TIMED_OUT"}


def test_a_task_always_in_progress_times_out_and_is_retried(clock):
    limits = policy(retries=1, timeout_seconds=30, timeout_policy="RETRY")
    scenario = Scenario(clock, step("t1", policy=limits), step("t2"))
    worker = scenario.worker("t1")

    for second in (0, 9, 18):
        assert scenario.at(second).worker("t1").polls() == ["t1"]
        worker.in_progress(callback_seconds=9)
        assert scenario.at(second + 8.999).queue("t1") == []
    assert scenario.at(27).worker("t1").polls() == ["t1"]

    assert scenario.at(29.999).statuses == {"t1": "IN_PROGRESS"}
    scenario.at(30)
    assert scenario.attempts("t1") == ["TIMED_OUT", "SCHEDULED"]

    assert scenario.at(32).worker("t1").completes(total=3) is False
    assert scenario.attempts("t1") == ["TIMED_OUT", "SCHEDULED"]
    assert not scenario.is_waiting_for("t2")


def test_a_task_of_a_dead_worker_is_pollable_after_its_delay(clock):
    scenario = Scenario(clock, step("t1", policy=policy(retries=1, delay_seconds=5, lease_seconds=20)))
    scenario.worker("t1").polls()

    assert scenario.at(19.999).statuses == {"t1": "IN_PROGRESS"}
    assert scenario.at(20).attempts("t1") == ["TIMED_OUT", "SCHEDULED"]
    assert scenario.at(24.999).queue("t1") == []
    assert scenario.at(25).worker("t1", id="another").polls() == ["t1"]
