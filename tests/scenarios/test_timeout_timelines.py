"""Examples of timeouts from execution §4.6, to the second."""

import pytest

from tests.builders import policy, step
from tests.scenario import Scenario


def visible_since(scenario: Scenario, ref: str) -> float:
    return scenario.seconds(scenario.task(ref).visible_at)


def test_the_retry_delay_counts_twice_for_the_poll_timeout(clock):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1, delay_seconds=5, poll_seconds=60)))
    worker = scenario.worker("pay")
    worker.polls()

    scenario.at(10)
    worker.fails()

    assert (scenario.seconds(scenario.task("pay").scheduled_at), visible_since(scenario, "pay")) == (10, 15)
    assert scenario.at(14).queue("pay") == []
    assert scenario.at(15).queue("pay") == ["pay, attempt 2"]
    assert scenario.at(79).status == "RUNNING"
    assert scenario.at(80).status == "TIMED_OUT"
    assert scenario.seconds(scenario.task("pay").ended_at) == 80


def test_without_a_poll_the_default_policy_ends_the_run(clock):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1, poll_seconds=60)))

    assert scenario.at(59).status == "RUNNING"
    assert scenario.at(60).status == "TIMED_OUT"
    assert scenario.statuses == {"pay": "TIMED_OUT"}
    assert scenario.seconds(scenario.row.ended_at) == 60


def test_without_a_poll_the_retry_policy_repeats_the_task(clock):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1, poll_seconds=60, timeout_policy="RETRY")))

    scenario.at(60)

    assert scenario.attempts("pay") == ["TIMED_OUT", "SCHEDULED"]
    assert scenario.queue("pay") == ["pay, attempt 2"]


def answers_in_progress_until_27(scenario: Scenario) -> None:
    for second in (0, 9, 18):
        scenario.at(second)
        assert scenario.worker("pay").polls() == ["pay"]
        scenario.worker("pay").in_progress(callback_seconds=9)
        assert scenario.at(second + 8).queue("pay") == []
    assert scenario.at(27).worker("pay").polls() == ["pay"]


@pytest.mark.parametrize(("timeout_policy", "status"), [("TIME_OUT_WF", "TIMED_OUT"), ("RETRY", "RUNNING")])
def test_c_callbacks_do_not_stop_the_task_s_own_clock(clock, timeout_policy, status):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1, timeout_seconds=30, timeout_policy=timeout_policy)))
    answers_in_progress_until_27(scenario)

    assert scenario.at(29).statuses == {"pay": "IN_PROGRESS"}
    scenario.at(30)

    assert scenario.status == status
    assert scenario.attempts("pay")[0] == "TIMED_OUT"
    assert scenario.at(32).worker("pay").completes() is False


def test_d_a_silent_worker_loses_its_lease(clock):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1, delay_seconds=5, lease_seconds=20)))
    scenario.worker("pay").polls()

    assert scenario.at(19).statuses == {"pay": "IN_PROGRESS"}
    scenario.at(20)

    assert scenario.attempts("pay") == ["TIMED_OUT", "SCHEDULED"]
    assert scenario.at(24).queue("pay") == []
    assert scenario.at(25).queue("pay") == ["pay, attempt 2"]


def test_a_callback_restarts_the_response_timeout_at_the_next_poll(clock):
    scenario = Scenario(clock, step("pay", policy=policy(lease_seconds=20)))
    worker = scenario.worker("pay")
    worker.polls()
    scenario.at(15)
    worker.in_progress(callback_seconds=9)

    assert scenario.at(23).queue("pay") == []
    assert scenario.at(24).worker("pay").polls() == ["pay"]
    assert scenario.at(43).status == "RUNNING"
    assert scenario.at(44).status == "TIMED_OUT"


def test_a_lease_extension_counts_from_its_request(clock):
    scenario = Scenario(clock, step("pay", policy=policy(lease_seconds=20)))
    worker = scenario.worker("pay")
    worker.polls()
    scenario.at(15)
    worker.extend_lease()

    assert scenario.at(34).statuses == {"pay": "IN_PROGRESS"}
    assert scenario.at(35).status == "TIMED_OUT"


def test_f_the_retry_delay_lengthens_the_task_s_own_clock(clock):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1, delay_seconds=5, timeout_seconds=30)))
    scenario.at(10).worker("pay").fails()

    assert scenario.at(15).worker("pay").polls() == ["pay"]
    scenario.at(40).worker("pay").extend_lease()
    assert scenario.at(49).status == "RUNNING"
    assert scenario.at(50).status == "TIMED_OUT"


@pytest.mark.parametrize("timeout_policy", ["TIME_OUT_WF", "RETRY"])
def test_the_total_timeout_includes_all_attempts_and_delays(clock, timeout_policy):
    limits = policy(retries=3, delay_seconds=60, total_seconds=100, timeout_policy=timeout_policy)
    scenario = Scenario(clock, step("pay", policy=limits))

    scenario.at(5).worker("pay").fails()
    assert visible_since(scenario, "pay") == 65
    scenario.at(70).worker("pay").fails()
    assert (scenario.task("pay").number, visible_since(scenario, "pay")) == (2, 130)

    assert scenario.at(99).status == "RUNNING"
    assert scenario.at(100).status == "TIMED_OUT"
    assert scenario.attempts("pay") == ["FAILED", "FAILED", "TIMED_OUT"]
