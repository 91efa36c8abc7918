"""The four timelines of a task that the product was asked for, with their exact seconds."""

from tests.builders import policy, step
from tests.story import Story


def test_a_failed_task_is_rescheduled_at_once_and_pollable_after_its_delay(clock):
    story = Story(clock, step("t1", policy=policy(retries=1, delay_seconds=5)))
    story.worker("t1").polls()

    story.at(10)
    story.worker("t1").fails()

    assert story.attempts("t1") == ["FAILED", "SCHEDULED"]
    assert story.seconds(story.task("t1").scheduled_at) == 10
    assert story.at(14.999).queue("t1") == []
    assert story.at(15).queue("t1") == ["t1, attempt 2"]


def test_an_unpolled_task_times_out_after_its_poll_timeout(clock):
    story = Story(clock, step("t1", policy=policy(poll_seconds=60)))

    assert story.at(59.999).statuses == {"t1": "SCHEDULED"}
    assert story.at(60).statuses == {"t1": "TIMED_OUT"}


def test_a_task_always_in_progress_times_out_and_is_retried(clock):
    limits = policy(retries=1, timeout_seconds=30, timeout_policy="RETRY")
    story = Story(clock, step("t1", policy=limits), step("t2"))
    worker = story.worker("t1")

    for second in (0, 9, 18):
        assert story.at(second).worker("t1").polls() == ["t1"]
        worker.in_progress(callback_seconds=9)
        assert story.at(second + 8.999).queue("t1") == []
    assert story.at(27).worker("t1").polls() == ["t1"]

    assert story.at(29.999).statuses == {"t1": "IN_PROGRESS"}
    story.at(30)
    assert story.attempts("t1") == ["TIMED_OUT", "SCHEDULED"]

    assert story.at(32).worker("t1").completes(total=3) is False
    assert story.attempts("t1") == ["TIMED_OUT", "SCHEDULED"]
    assert not story.is_waiting_for("t2")


def test_a_task_of_a_dead_worker_is_pollable_after_its_delay(clock):
    story = Story(clock, step("t1", policy=policy(retries=1, delay_seconds=5, lease_seconds=20)))
    story.worker("t1").polls()

    assert story.at(19.999).statuses == {"t1": "IN_PROGRESS"}
    assert story.at(20).attempts("t1") == ["TIMED_OUT", "SCHEDULED"]
    assert story.at(24.999).queue("t1") == []
    assert story.at(25).worker("t1", id="another").polls() == ["t1"]
