"""Restarts of ended runs (execution §7.2, §11 row 34), and retries that reset other tasks as well (§7.3)."""

import pytest

from conductor_app.core.errors import Conflict, NotFound
from conductor_app.runs.models import Attempt, HistoryEntry, Task, TaskLog
from tests.builders import definition, dynamic_fork, fork, noop, policy, set_variable, step, switch, terminate, wait
from tests.runs.report_contexts import row_violations
from tests.scenario import Scenario, register_definitions


def test_a_restarted_run_is_as_it_began(clock):
    scenario = Scenario(clock, set_variable("v", n=2), step("a"), step("b"), variables={"n": 1}, input={"x": 1})
    scenario.worker("a").completes()
    scenario.worker("b").fails("no luck")

    clock.advance(seconds=100)
    scenario.restart()

    row = scenario.row
    assert (row.status, row.created_at, row.last_retried_at, row.ended_at) == ("RUNNING", clock.now(), 0, None)
    assert (row.input, row.output, row.variables) == ({"x": 1}, {}, {"n": 2})
    assert (row.reason, row.failed_refs, row.failed_names, row.failed_attempt_id) == ("", [], [], "")
    assert scenario.statuses == {"v": "COMPLETED", "a": "SCHEDULED"}
    assert Attempt.objects.filter(run_id=scenario.id).count() == 2
    scenario.worker("a").completes()
    scenario.worker("b").completes()
    assert scenario.status == "COMPLETED"
    assert row_violations(scenario.id) == []


def test_variables_are_reset_to_those_of_the_definition(clock):
    scenario = Scenario(clock, step("a"), set_variable("v", n=2), variables={"n": 1})
    scenario.worker("a").completes()
    assert scenario.row.variables == {"n": 2}

    scenario.restart()

    assert scenario.row.variables == {"n": 1}


@pytest.mark.parametrize("latest", [False, True])
def test_a_newer_definition_is_used_only_on_request(clock, latest):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").completes()
    register_definitions(definition(step("new"), version=2))

    scenario.restart(latest_definitions=latest)

    assert scenario.row.version == (2 if latest else 1)
    assert scenario.statuses == {"new" if latest else "a": "SCHEDULED"}
    scenario.worker("new" if latest else "a").completes()
    assert scenario.status == "COMPLETED"


def test_a_restart_with_the_latest_definition_fails_if_none_exists(clock):
    scenario = Scenario(clock, step("a"))
    run = scenario.starts("anonymous", document=definition(noop("n"), name="anonymous"))
    assert run.status == "COMPLETED"

    with pytest.raises(NotFound):
        run.restart(latest_definitions=True)
    run.restart()
    assert run.status == "COMPLETED"


def test_a_completed_run_is_restarted_unless_it_is_not_restartable(clock):
    scenario = Scenario(clock, step("a"), restartable=False)
    scenario.worker("a").fails()
    scenario.restart()
    scenario.worker("a").completes()
    assert scenario.status == "COMPLETED"

    with pytest.raises(NotFound):
        scenario.restart()


def test_an_open_run_is_not_restarted(clock):
    scenario = Scenario(clock, step("a"))

    with pytest.raises(Conflict):
        scenario.restart()


def test_logs_are_deleted_with_their_tasks(clock):
    scenario = Scenario(clock, step("a"))
    TaskLog.objects.create(attempt_id=scenario.task("a").id, at=1, line="said")
    scenario.worker("a").completes()

    scenario.restart()

    assert not TaskLog.objects.exists()
    assert "DeleteTasks" in {line["effect"] for entry in HistoryEntry.objects.all() for line in entry.effects}


LIMITED = {"rateLimitKey": "all", "concurrentExecLimit": 1}


def test_a_run_that_was_rate_limited_when_it_ended_continues(clock):
    scenario = Scenario(clock, step("a"), rateLimitConfig=LIMITED)
    held = scenario.starts("order")
    assert held.row.is_held
    held.terminate()
    scenario.worker("a").completes()

    held.restart()

    assert (held.row.is_held, held.statuses) == (False, {"a": "SCHEDULED"})
    assert len(scenario.queue("a")) == 1


def test_a_restart_waits_for_its_limit_like_a_start(clock):
    scenario = Scenario(clock, step("a"), rateLimitConfig=LIMITED)
    scenario.worker("a").completes()
    other = scenario.starts("order")

    scenario.restart()

    assert (scenario.row.is_held, other.row.is_held, len(scenario.queue("a"))) == (True, False, 1)
    scenario.worker("a").completes()
    assert (other.status, scenario.status, scenario.row.is_held, len(scenario.queue("a"))) == (
        "COMPLETED",
        "RUNNING",
        False,
        1,
    )


def test_a_restart_with_a_newly_rate_limited_definition_counts_and_waits(clock):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").completes()
    register_definitions(definition(step("a"), rateLimitConfig={**LIMITED, "policy": "REJECT"}))
    scenario.starts("order")

    with pytest.raises(Conflict, match="concurrent runs"):
        scenario.restart(latest_definitions=True)

    scenario.worker("a").completes()
    scenario.restart(latest_definitions=True)
    assert (scenario.row.limit_key, scenario.status) == ("all", "RUNNING")


def test_a_retry_resets_the_total_timeout(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=1, total_seconds=20, delay_seconds=2)))
    scenario.worker("a").fails()
    scenario.later(2).worker("a").fails()
    scenario.later(3600)

    scenario.retry()
    assert scenario.later(19).status == "RUNNING"
    assert scenario.later(1).status == "TIMED_OUT"


def test_a_retried_wait_keeps_its_timer(clock):
    scenario = Scenario(clock, *fork([wait("w", duration="10 s")], [step("a")]))
    scenario.at(5)
    scenario.worker("a").fails()

    scenario.at(7).retry()

    assert scenario.at(9).statuses["w"] == "IN_PROGRESS"
    assert scenario.at(10).statuses["w"] == "COMPLETED"


def test_a_retry_clears_the_failed_references(clock):
    scenario = Scenario(clock, step("a"))
    scenario.worker("a").fails()
    assert (scenario.row.failed_refs, scenario.row.failed_names) == (["a"], ["a"])

    scenario.retry()

    row = scenario.row
    assert (row.failed_refs, row.failed_names, row.failed_attempt_id, row.reason) == ([], [], "", "")


def checked(clock, *before) -> Scenario:
    no = [terminate("t", "FAILED", "not valid")]
    asked = switch("way", {"no": no}, [step("ship")], inputs={"way": "${check.output.way}"})
    return Scenario(clock, *before, step("check"), noop("n"), asked, step("z"))


def test_a_run_failed_by_a_terminate_step_is_retried_from_its_cause(clock):
    scenario = checked(clock, step("a"))
    scenario.worker("a").completes()
    scenario.worker("check").completes(way="no")
    assert (scenario.status, scenario.reason) == ("FAILED", "not valid")

    scenario.retry()
    assert (scenario.status, scenario.statuses) == ("RUNNING", {"a": "COMPLETED", "check": "SCHEDULED"})
    assert scenario.attempts("check") == ["COMPLETED", "SCHEDULED"]

    scenario.worker("check").completes(way="yes")
    scenario.worker("ship").completes()
    scenario.worker("z").completes()
    assert scenario.status == "COMPLETED"
    assert row_violations(scenario.id) == []


def test_an_unavoidable_terminate_step_is_not_retried(clock):
    scenario = Scenario(clock, noop("n"), terminate("t", "FAILED", "never"))

    with pytest.raises(Conflict):
        scenario.retry()


def test_a_terminate_in_a_branch_is_averted_and_the_other_branch_resumed(clock):
    stopper = switch("way", {"stop": [terminate("t", "FAILED")]}, inputs={"way": "${b.output.way}"})
    scenario = Scenario(clock, *fork([step("a")], [step("b"), stopper], on=["a", "way"]), step("z"))
    scenario.worker("b").completes(way="stop")

    scenario.retry()

    assert scenario.statuses == {
        "fork_join": "COMPLETED", "a": "SCHEDULED", "b": "SCHEDULED", "join": "IN_PROGRESS",
    }  # fmt: skip
    scenario.worker("b").completes(way="go")
    scenario.worker("a").completes()
    scenario.worker("z").completes()
    assert scenario.status == "COMPLETED"


def test_a_run_of_many_tasks_is_restarted(clock):
    inputs = {"forkTaskInputs": list(range(700)), "forkTaskName": "pay"}
    scenario = Scenario(clock, *dynamic_fork(inputs=inputs, optional=False), tasks=[policy("pay")])
    scenario.terminate()

    scenario.restart()

    assert Task.objects.filter(run_id=scenario.id).count() == 702
    assert len(scenario.queue("pay")) == 700
