"""The worked timelines of execution §4.6, with their exact seconds."""

import pytest

from tests.builders import policy, step
from tests.story import Story


def visible_since(story: Story, ref: str) -> float:
    return story.seconds(story.task(ref).visible_at)


def test_the_retry_delay_counts_twice_for_the_poll_timeout(clock):
    story = Story(clock, step("pay", policy=policy(retries=1, delay_seconds=5, poll_seconds=60)))
    worker = story.worker("pay")
    worker.polls()

    story.at(10)
    worker.fails()

    assert (story.seconds(story.task("pay").scheduled_at), visible_since(story, "pay")) == (10, 15)
    assert story.at(14).queue("pay") == []
    assert story.at(15).queue("pay") == ["pay, attempt 2"]
    assert story.at(79).status == "RUNNING"
    assert story.at(80).status == "TIMED_OUT"
    assert story.seconds(story.task("pay").ended_at) == 80


def test_without_a_poll_the_default_policy_ends_the_run(clock):
    story = Story(clock, step("pay", policy=policy(retries=1, poll_seconds=60)))

    assert story.at(59).status == "RUNNING"
    assert story.at(60).status == "TIMED_OUT"
    assert story.statuses == {"pay": "TIMED_OUT"}
    assert story.seconds(story.row.ended_at) == 60


def test_without_a_poll_the_retry_policy_repeats_the_task(clock):
    story = Story(clock, step("pay", policy=policy(retries=1, poll_seconds=60, timeout_policy="RETRY")))

    story.at(60)

    assert story.attempts("pay") == ["TIMED_OUT", "SCHEDULED"]
    assert story.queue("pay") == ["pay, attempt 2"]


def answers_in_progress_until_27(story: Story) -> None:
    for second in (0, 9, 18):
        story.at(second)
        assert story.worker("pay").polls() == ["pay"]
        story.worker("pay").in_progress(callback_seconds=9)
        assert story.at(second + 8).queue("pay") == []
    assert story.at(27).worker("pay").polls() == ["pay"]


@pytest.mark.parametrize(("timeout_policy", "status"), [("TIME_OUT_WF", "TIMED_OUT"), ("RETRY", "RUNNING")])
def test_c_callbacks_do_not_stop_the_task_s_own_clock(clock, timeout_policy, status):
    story = Story(clock, step("pay", policy=policy(retries=1, timeout_seconds=30, timeout_policy=timeout_policy)))
    answers_in_progress_until_27(story)

    assert story.at(29).statuses == {"pay": "IN_PROGRESS"}
    story.at(30)

    assert story.status == status
    assert story.attempts("pay")[0] == "TIMED_OUT"
    assert story.at(32).worker("pay").completes() is False


def test_d_a_silent_worker_loses_its_lease(clock):
    story = Story(clock, step("pay", policy=policy(retries=1, delay_seconds=5, lease_seconds=20)))
    story.worker("pay").polls()

    assert story.at(19).statuses == {"pay": "IN_PROGRESS"}
    story.at(20)

    assert story.attempts("pay") == ["TIMED_OUT", "SCHEDULED"]
    assert story.at(24).queue("pay") == []
    assert story.at(25).queue("pay") == ["pay, attempt 2"]


def test_a_callback_restarts_the_response_timeout_at_the_next_poll(clock):
    story = Story(clock, step("pay", policy=policy(lease_seconds=20)))
    worker = story.worker("pay")
    worker.polls()
    story.at(15)
    worker.in_progress(callback_seconds=9)

    assert story.at(23).queue("pay") == []
    assert story.at(24).worker("pay").polls() == ["pay"]
    assert story.at(43).status == "RUNNING"
    assert story.at(44).status == "TIMED_OUT"


def test_a_lease_extension_counts_from_its_request(clock):
    story = Story(clock, step("pay", policy=policy(lease_seconds=20)))
    worker = story.worker("pay")
    worker.polls()
    story.at(15)
    worker.extend_lease()

    assert story.at(34).statuses == {"pay": "IN_PROGRESS"}
    assert story.at(35).status == "TIMED_OUT"


def test_f_the_retry_delay_lengthens_the_task_s_own_clock(clock):
    story = Story(clock, step("pay", policy=policy(retries=1, delay_seconds=5, timeout_seconds=30)))
    story.at(10).worker("pay").fails()

    assert story.at(15).worker("pay").polls() == ["pay"]
    story.at(40).worker("pay").extend_lease()
    assert story.at(49).status == "RUNNING"
    assert story.at(50).status == "TIMED_OUT"


@pytest.mark.parametrize("timeout_policy", ["TIME_OUT_WF", "RETRY"])
def test_the_total_timeout_includes_all_attempts_and_delays(clock, timeout_policy):
    limits = policy(retries=3, delay_seconds=60, total_seconds=100, timeout_policy=timeout_policy)
    story = Story(clock, step("pay", policy=limits))

    story.at(5).worker("pay").fails()
    assert visible_since(story, "pay") == 65
    story.at(70).worker("pay").fails()
    assert (story.task("pay").number, visible_since(story, "pay")) == (2, 130)

    assert story.at(99).status == "RUNNING"
    assert story.at(100).status == "TIMED_OUT"
    assert story.attempts("pay") == ["FAILED", "FAILED", "TIMED_OUT"]
