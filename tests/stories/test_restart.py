"""Ended runs begin anew (execution §7.2, §11 row 34), and retries that need more than another attempt (§7.3)."""

import pytest

from conductor_app.core.errors import Conflict, NotFound
from conductor_app.models import Attempt, HistoryEntry, Task, TaskLog
from tests.builders import definition, dynamic_fork, fork, noop, policy, set_variable, step, switch, terminate, wait
from tests.engine.views import row_violations
from tests.story import Story, register_definitions


def test_a_restarted_run_is_as_it_began(clock):
    story = Story(clock, set_variable("v", n=2), step("a"), step("b"), variables={"n": 1}, input={"x": 1})
    story.worker("a").completes()
    story.worker("b").fails("no luck")

    clock.advance(seconds=100)
    story.restart()

    row = story.row
    assert (row.status, row.created_at, row.last_retried_at, row.ended_at) == ("RUNNING", clock.now(), 0, None)
    assert (row.input, row.output, row.variables) == ({"x": 1}, {}, {"n": 2})
    assert (row.reason, row.failed_refs, row.failed_names, row.failed_attempt_id) == ("", [], [], "")
    assert story.statuses == {"v": "COMPLETED", "a": "SCHEDULED"}
    assert Attempt.objects.filter(run_id=story.id).count() == 2
    story.worker("a").completes()
    story.worker("b").completes()
    assert story.status == "COMPLETED"
    assert row_violations(story.id) == []


def test_variables_are_reset_to_those_of_the_definition(clock):
    story = Story(clock, step("a"), set_variable("v", n=2), variables={"n": 1})
    story.worker("a").completes()
    assert story.row.variables == {"n": 2}

    story.restart()

    assert story.row.variables == {"n": 1}


@pytest.mark.parametrize("latest", [False, True])
def test_a_newer_definition_is_used_only_on_request(clock, latest):
    story = Story(clock, step("a"))
    story.worker("a").completes()
    register_definitions(definition(step("new"), version=2))

    story.restart(latest_definitions=latest)

    assert story.row.version == (2 if latest else 1)
    assert story.statuses == {"new" if latest else "a": "SCHEDULED"}
    story.worker("new" if latest else "a").completes()
    assert story.status == "COMPLETED"


def test_a_restart_with_the_latest_definition_fails_if_none_exists(clock):
    story = Story(clock, step("a"))
    run = story.starts("anonymous", document=definition(noop("n"), name="anonymous"))
    assert run.status == "COMPLETED"

    with pytest.raises(NotFound):
        run.restart(latest_definitions=True)
    run.restart()
    assert run.status == "COMPLETED"


def test_a_completed_run_is_restarted_unless_it_is_not_restartable(clock):
    story = Story(clock, step("a"), restartable=False)
    story.worker("a").fails()
    story.restart()
    story.worker("a").completes()
    assert story.status == "COMPLETED"

    with pytest.raises(NotFound):
        story.restart()


def test_an_open_run_is_not_restarted(clock):
    story = Story(clock, step("a"))

    with pytest.raises(Conflict):
        story.restart()


def test_logs_are_deleted_with_their_tasks(clock):
    story = Story(clock, step("a"))
    TaskLog.objects.create(attempt_id=story.task("a").id, at=1, line="said")
    story.worker("a").completes()

    story.restart()

    assert not TaskLog.objects.exists()
    assert "DeleteTasks" in {line["effect"] for entry in HistoryEntry.objects.all() for line in entry.effects}


LIMITED = {"rateLimitKey": "all", "concurrentExecLimit": 1}


def test_a_run_that_was_rate_limited_when_it_ended_continues(clock):
    story = Story(clock, step("a"), rateLimitConfig=LIMITED)
    held = story.starts("order")
    assert held.row.is_held
    held.terminate()
    story.worker("a").completes()

    held.restart()

    assert (held.row.is_held, held.statuses) == (False, {"a": "SCHEDULED"})
    assert len(story.queue("a")) == 1


def test_a_restart_waits_for_its_limit_like_a_start(clock):
    story = Story(clock, step("a"), rateLimitConfig=LIMITED)
    story.worker("a").completes()
    other = story.starts("order")

    story.restart()

    assert (story.row.is_held, other.row.is_held, len(story.queue("a"))) == (True, False, 1)
    story.worker("a").completes()
    assert (other.status, story.status, story.row.is_held, len(story.queue("a"))) == ("COMPLETED", "RUNNING", False, 1)


def test_a_restart_with_a_newly_rate_limited_definition_counts_and_waits(clock):
    story = Story(clock, step("a"))
    story.worker("a").completes()
    register_definitions(definition(step("a"), rateLimitConfig={**LIMITED, "policy": "REJECT"}))
    story.starts("order")

    with pytest.raises(Conflict, match="concurrent runs"):
        story.restart(latest_definitions=True)

    story.worker("a").completes()
    story.restart(latest_definitions=True)
    assert (story.row.limit_key, story.status) == ("all", "RUNNING")


def test_a_retry_resets_the_total_timeout(clock):
    story = Story(clock, step("a", policy=policy(retries=1, total_seconds=20, delay_seconds=2)))
    story.worker("a").fails()
    story.later(2).worker("a").fails()
    story.later(3600)

    story.retry()
    assert story.later(19).status == "RUNNING"
    assert story.later(1).status == "TIMED_OUT"


def test_a_retried_wait_keeps_its_timer(clock):
    story = Story(clock, *fork([wait("w", duration="10 s")], [step("a")]))
    story.at(5)
    story.worker("a").fails()

    story.at(7).retry()

    assert story.at(9).statuses["w"] == "IN_PROGRESS"
    assert story.at(10).statuses["w"] == "COMPLETED"


def test_a_retry_clears_the_failed_references(clock):
    story = Story(clock, step("a"))
    story.worker("a").fails()
    assert (story.row.failed_refs, story.row.failed_names) == (["a"], ["a"])

    story.retry()

    row = story.row
    assert (row.failed_refs, row.failed_names, row.failed_attempt_id, row.reason) == ([], [], "", "")


def checked(clock, *before) -> Story:
    no = [terminate("t", "FAILED", "not valid")]
    asked = switch("way", {"no": no}, [step("ship")], inputs={"way": "${check.output.way}"})
    return Story(clock, *before, step("check"), noop("n"), asked, step("z"))


def test_a_run_failed_by_a_terminate_step_is_retried_from_its_cause(clock):
    story = checked(clock, step("a"))
    story.worker("a").completes()
    story.worker("check").completes(way="no")
    assert (story.status, story.reason) == ("FAILED", "not valid")

    story.retry()
    assert (story.status, story.statuses) == ("RUNNING", {"a": "COMPLETED", "check": "SCHEDULED"})
    assert story.attempts("check") == ["COMPLETED", "SCHEDULED"]

    story.worker("check").completes(way="yes")
    story.worker("ship").completes()
    story.worker("z").completes()
    assert story.status == "COMPLETED"
    assert row_violations(story.id) == []


def test_an_unavoidable_terminate_step_is_not_retried(clock):
    story = Story(clock, noop("n"), terminate("t", "FAILED", "never"))

    with pytest.raises(Conflict):
        story.retry()


def test_a_terminate_in_a_branch_is_averted_and_the_other_branch_resumed(clock):
    stopper = switch("way", {"stop": [terminate("t", "FAILED")]}, inputs={"way": "${b.output.way}"})
    story = Story(clock, *fork([step("a")], [step("b"), stopper], on=["a", "way"]), step("z"))
    story.worker("b").completes(way="stop")

    story.retry()

    assert story.statuses == {
        "fork_join": "COMPLETED", "a": "SCHEDULED", "b": "SCHEDULED", "join": "IN_PROGRESS",
    }  # fmt: skip
    story.worker("b").completes(way="go")
    story.worker("a").completes()
    story.worker("z").completes()
    assert story.status == "COMPLETED"


def test_a_run_of_many_tasks_is_restarted(clock):
    inputs = {"forkTaskInputs": list(range(700)), "forkTaskName": "pay"}
    story = Story(clock, *dynamic_fork(inputs=inputs, optional=False), tasks=[policy("pay")])
    story.terminate()

    story.restart()

    assert Task.objects.filter(run_id=story.id).count() == 702
    assert len(story.queue("pay")) == 700
