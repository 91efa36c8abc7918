"""How runs end: their output, whom they tell, and what a failure workflow would be given (execution §2.4, §2.5, §6)."""

import pytest

from conductor_app.core import commands
from conductor_app.core.errors import NotAllowedInState
from tests.builders import fork, noop, plan, set_variable, step, terminate
from tests.core.simulated_run import RunInMemory

CLEANUP = plan(step("sweep"), name="cleanup")


def test_the_output_is_that_of_the_task_created_last():
    life = RunInMemory(plan(step("a"), step("b"))).completes("a", n=1).completes("b", n=2)

    assert life.run.output == {"n": 2}


def test_the_output_follows_the_definition():
    said = {
        "sum": "${a.output.n}",
        "way": "${workflow.input.way}",
        "v": "${workflow.variables.v}",
        "none": "${b.output.x}",
    }
    life = RunInMemory(plan(step("a"), set_variable("s", v=3), outputParameters=said), {"way": "x"}).completes("a", n=1)

    assert life.run.output == {"sum": 1, "way": "x", "v": 3, "none": None}


def test_a_run_that_failed_has_an_output_too():
    life = (
        RunInMemory(plan(step("a"), step("b"), outputParameters={"n": "${a.output.n}"})).completes("a", n=1).fails("b")
    )

    assert (life.status, life.run.output) == ("FAILED", {"n": 1})


def test_a_run_with_an_open_branch_is_open():
    life = RunInMemory(plan(fork([step("a")], [step("b")], on=["a"]))).completes("a")
    assert life.status == "RUNNING"

    assert life.completes("b").status == "COMPLETED"


def test_of_two_failures_the_run_names_the_one_that_came_first_in_the_definition():
    steps = fork([terminate("x", "STOPPED")], [terminate("y", "STOPPED")])
    life = RunInMemory(plan(steps))

    assert life.run.failed_attempt_id == life.task("x").attempt.id


def test_a_failure_ends_the_run_before_further_tasks_start():
    life = RunInMemory(plan(fork([step("a"), step("c")], [step("b"), step("d")])))
    life.do(commands.pause_run)
    life.fails("a").completes("b")

    life.do(commands.resume_run)

    assert life.status == "FAILED"
    assert "d" not in life.statuses


def failed(definition_fields: dict, **known) -> RunInMemory:
    return RunInMemory(plan(step("a"), **definition_fields), {"n": 1}, known=known).fails("a", "no funds")


def test_a_failure_workflow_gets_the_input_and_the_failure():
    life = failed({"failureWorkflow": "cleanup"}, cleanup=CLEANUP)

    [started] = life.started
    assert started.definition is CLEANUP
    assert started.is_failure_workflow
    assert started.input == {
        "n": 1,
        "workflowId": "run",
        "reason": life.run.reason,
        "failureStatus": "FAILED",
        "failureTaskId": life.task("a").attempt.id,
    }
    assert life.run.output["conductor.failure_workflow"] == started.id


@pytest.mark.parametrize("name", ["cleanup", "$workflow.input.which", "${workflow.input.which}"])
def test_a_missing_failure_workflow_is_reported_in_the_output(name):
    life = failed({"failureWorkflow": name})

    assert life.started == []
    assert life.run.output["conductor.failure_workflow"].startswith("Error workflow")


@pytest.mark.parametrize(("with_failure", "count"), [(False, 0), (True, 1)])
def test_an_operator_may_ask_for_the_failure_workflow(with_failure, count):
    life = RunInMemory(plan(step("a"), failureWorkflow="cleanup"), known={"cleanup": CLEANUP})

    life.do(commands.terminate_run("enough", with_failure))

    assert (life.status, len(life.started)) == ("TERMINATED", count)


def test_a_terminate_names_itself_as_the_cause_only_if_the_end_is_bad():
    steps = {status: RunInMemory(plan(terminate("end", status))) for status in ("COMPLETED", "FAILED")}

    assert steps["COMPLETED"].run.failed_attempt_id == ""
    assert steps["FAILED"].run.failed_attempt_id == steps["FAILED"].task("end").attempt.id


def test_a_finished_run_with_a_rate_limit_announces_its_free_slot():
    life = RunInMemory(plan(noop("n")), limit_key="x")

    assert [(message.subject, message.facts) for message in life.sent] == [("release", {"name": "order", "key": "x"})]


def test_a_held_run_schedules_only_its_first_tasks():
    life = RunInMemory(plan(step("a")), limit_key="x", is_held=True)
    assert life.task("a").attempt.visible_at > 10**15

    life.later(5).do(commands.release_held_run)

    assert life.task("a").attempt.visible_at == 5_000


def test_a_held_run_without_a_worker_task_starts_on_release():
    life = RunInMemory(plan(noop("n"), step("a")), limit_key="x", is_held=True)
    assert life.statuses == {}

    life.do(commands.release_held_run)

    assert life.statuses == {"n": "COMPLETED", "a": "SCHEDULED"}


def test_an_undecidable_run_fails_with_a_reason():
    life = RunInMemory(plan(step("a"), outputParameters={"n": 1}, failureWorkflow="cleanup"))

    life.do(commands.FailUndecidableRun("It makes no sense."))

    assert (life.status, life.run.reason, life.run.output, life.started) == ("FAILED", "It makes no sense.", {}, [])


def test_a_completed_run_cannot_be_retried():
    life = RunInMemory(plan(step("a"))).completes("a")

    with pytest.raises(NotAllowedInState):
        life.retry()
