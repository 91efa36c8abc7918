"""What operators do to runs: pause, resume, terminate, retry (execution §7.2, §7.3)."""

import pytest

from conductor_app.core.errors import Conflict
from tests.builders import fork, human, loop, policy, step, switch, wait
from tests.story import Story


def test_a_paused_run_schedules_no_tasks_until_it_is_resumed(clock):
    story = Story(clock, step("a"), step("b"))
    story.pause()

    story.worker("a").completes()
    assert (story.status, story.statuses) == ("PAUSED", {"a": "COMPLETED"})

    story.resume()
    assert story.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}


def test_a_paused_run_lets_its_waits_pass_when_it_is_resumed(clock):
    story = Story(clock, wait("pause", duration="10 s"), step("a"))
    story.pause()
    assert story.later(20).statuses == {"pause": "IN_PROGRESS"}

    story.resume()

    assert story.statuses == {"pause": "COMPLETED", "a": "SCHEDULED"}


def test_a_failure_in_a_paused_run_is_retried_after_it_is_resumed(clock):
    story = Story(clock, step("a", policy=policy(retries=1)))
    story.pause()
    story.worker("a").fails()

    assert story.queue("a") == []
    story.resume()
    assert story.queue("a") == ["a, attempt 2"]


def test_pausing_twice_is_pausing(clock):
    story = Story(clock, step("a"))
    story.pause()
    story.pause()

    assert story.status == "PAUSED"


@pytest.mark.parametrize("act", ["resume", "retry"])
def test_a_running_run_rejects_actions_for_ended_runs(clock, act):
    story = Story(clock, step("a"))

    with pytest.raises(Conflict):
        getattr(story, act)()


@pytest.mark.parametrize("act", ["pause", "resume", "retry", "terminate"])
def test_a_completed_run_rejects_actions_for_active_runs(clock, act):
    story = Story(clock, step("a"))
    story.worker("a").completes()

    with pytest.raises(Conflict):
        getattr(story, act)()


def test_terminating_cancels_open_tasks(clock):
    story = Story(clock, *fork([step("a")], [human("b")]))
    story.worker("a").polls()

    story.terminate("enough")

    assert (story.status, story.reason) == ("TERMINATED", "enough")
    assert story.statuses == {"fork_join": "COMPLETED", "a": "CANCELED", "b": "CANCELED", "join": "CANCELED"}
    assert story.worker("a").completes() is False


def test_terminating_a_failed_run_only_rewrites_its_status(clock):
    story = Story(clock, step("a"))
    story.worker("a").fails()

    story.terminate("enough")

    assert (story.status, story.statuses) == ("TERMINATED", {"a": "FAILED"})


def test_a_retry_repeats_failed_tasks_and_those_canceled_with_them(clock):
    story = Story(clock, *fork([step("a"), step("c")], [step("b")]), step("d"))
    story.worker("a").fails()
    assert story.statuses == {"fork_join": "COMPLETED", "a": "FAILED", "b": "CANCELED", "join": "CANCELED"}

    story.retry()

    assert story.statuses == {"fork_join": "COMPLETED", "a": "SCHEDULED", "b": "SCHEDULED", "join": "IN_PROGRESS"}
    assert (story.reason, story.row.ended_at) == ("", None)
    for task_type in ("b", "a", "c", "d"):
        story.worker(task_type).completes()
    assert story.status == "COMPLETED"


def test_a_retry_grants_exactly_one_attempt(clock):
    story = Story(clock, step("a", policy=policy(retries=1)))
    story.worker("a").fails()
    story.worker("a").fails()
    story.retry()

    assert story.queue("a") == ["a, attempt 3"]
    story.worker("a").fails()
    assert story.status == "FAILED"


def test_a_retry_continues_a_loop_in_the_failed_iteration(clock):
    story = Story(clock, loop("l", step("a"), step("b"), times=3))
    for task_type in ("a", "b", "a"):
        story.worker(task_type).completes()
    story.worker("b").fails()

    story.retry()
    assert (story.statuses["l"], story.statuses["b__2"]) == ("IN_PROGRESS", "SCHEDULED")

    for task_type in ("b", "a", "b"):
        story.worker(task_type).completes()
    assert story.status == "COMPLETED"


def test_a_retry_does_not_repeat_tasks_completed_with_errors(clock):
    story = Story(clock, step("a", optional=True), step("b"))
    story.worker("a").fails()
    story.worker("b").fails()

    story.retry()

    assert story.statuses == {"a": "COMPLETED_WITH_ERRORS", "b": "SCHEDULED"}


def test_a_retry_of_a_join_failed_by_a_permissive_branch_joins_again(clock):
    story = Story(clock, *fork([step("a", permissive=True)], [step("b")]))
    story.worker("a").fails()
    story.worker("b").completes()
    assert (story.status, story.statuses["join"]) == ("FAILED", "FAILED")

    story.retry()
    assert story.statuses["join"] == "IN_PROGRESS"

    story.worker("a").completes()
    assert story.status == "COMPLETED"


def test_a_timed_out_run_without_failed_tasks_continues_with_a_new_timeout(clock):
    story = Story(clock, step("a"), timeoutSeconds=10, timeoutPolicy="TIME_OUT_WF")
    story.at(10)
    assert story.status == "TIMED_OUT"

    story.retry()

    assert story.at(19).status == "RUNNING"
    assert story.at(20).status == "TIMED_OUT"


def test_a_retry_does_not_evaluate_a_switch_again(clock):
    story = Story(clock, switch("way", {"x": [step("a")]}, [step("b")]), input={"way": "x"})
    story.worker("a").fails()

    story.retry()
    story.worker("a").completes()

    assert story.status == "COMPLETED"
    assert story.attempts("way") == ["COMPLETED"]


def test_a_retried_permissive_task_does_not_repeat_later_steps(clock):
    story = Story(clock, step("a", permissive=True), step("b"), step("c"))
    story.worker("a").fails()
    story.worker("b").completes()
    story.worker("c").completes()
    assert story.status == "FAILED"

    story.retry()
    assert story.statuses == {"a": "SCHEDULED", "b": "COMPLETED", "c": "COMPLETED"}
    story.worker("a").completes()

    assert story.status == "COMPLETED"
    assert story.attempts("b") == ["COMPLETED"]
