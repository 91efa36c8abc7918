"""Completion of runs: output, messages to others and input of the failure workflow (execution §2.4, §2.5, §6)."""

import pytest

from conductor_app.core import commands
from conductor_app.core.errors import NotAllowedInState
from conductor_app.runs.commands.run_limits import start_held_run
from tests.builders import fork, noop, plan, set_variable, step, terminate
from tests.core.simulated_run import RunInMemory

CLEANUP = plan(step("sweep"), name="cleanup")


def test_the_output_is_that_of_the_task_created_last():
    run = RunInMemory(plan(step("a"), step("b"))).completes("a", n=1).completes("b", n=2)

    assert run.snapshot.output == {"n": 2}


def test_the_output_follows_the_definition():
    output_parameters = {
        "sum": "${a.output.n}",
        "way": "${workflow.input.way}",
        "v": "${workflow.variables.v}",
        "none": "${b.output.x}",
    }
    run = RunInMemory(
        plan(step("a"), set_variable("s", v=3), outputParameters=output_parameters), {"way": "x"}
    ).completes("a", n=1)

    assert run.snapshot.output == {"sum": 1, "way": "x", "v": 3, "none": None}


def test_a_run_that_failed_has_an_output_too():
    run = (
        RunInMemory(plan(step("a"), step("b"), outputParameters={"n": "${a.output.n}"})).completes("a", n=1).fails("b")
    )

    assert (run.status, run.snapshot.output) == ("FAILED", {"n": 1})


def test_a_run_with_an_open_branch_is_open():
    run = RunInMemory(plan(fork([step("a")], [step("b")], on=["a"]))).completes("a")
    assert run.status == "RUNNING"

    assert run.completes("b").status == "COMPLETED"


def test_of_two_failures_the_run_names_the_one_that_came_first_in_the_definition():
    runs = fork([terminate("x", "STOPPED")], [terminate("y", "STOPPED")])
    run = RunInMemory(plan(runs))

    assert run.snapshot.failed_attempt_id == run.task("x").attempt.id


def test_a_failure_ends_the_run_before_further_tasks_start():
    run = RunInMemory(plan(fork([step("a"), step("c")], [step("b"), step("d")])))
    run.apply(commands.pause_run)
    run.fails("a").completes("b")

    run.apply(commands.resume_run)

    assert run.status == "FAILED"
    assert "d" not in run.statuses


def start_failed_run(definition_fields: dict, **known) -> RunInMemory:
    return RunInMemory(plan(step("a"), **definition_fields), {"n": 1}, known=known).fails("a", "no funds")


def test_a_failure_workflow_gets_the_input_and_the_failure():
    run = start_failed_run({"failureWorkflow": "cleanup"}, cleanup=CLEANUP)

    [started] = run.started
    assert started.definition is CLEANUP
    assert started.is_failure_workflow
    assert started.input == {
        "n": 1,
        "workflowId": "run",
        "reason": run.snapshot.reason,
        "failureStatus": "FAILED",
        "failureTaskId": run.task("a").attempt.id,
    }
    assert run.snapshot.output["conductor.failure_workflow"] == started.id


@pytest.mark.parametrize("name", ["cleanup", "$workflow.input.which", "${workflow.input.which}"])
def test_a_missing_failure_workflow_is_reported_in_the_output(name):
    run = start_failed_run({"failureWorkflow": name})

    assert run.started == []
    assert run.snapshot.output["conductor.failure_workflow"].startswith("Error workflow")


@pytest.mark.parametrize(("with_failure", "count"), [(False, 0), (True, 1)])
def test_an_operator_may_ask_for_the_failure_workflow(with_failure, count):
    run = RunInMemory(plan(step("a"), failureWorkflow="cleanup"), known={"cleanup": CLEANUP})

    run.apply(commands.terminate_run("enough", with_failure))

    assert (run.status, len(run.started)) == ("TERMINATED", count)


def test_a_terminate_names_itself_as_the_cause_only_if_the_end_is_bad():
    runs = {status: RunInMemory(plan(terminate("end", status))) for status in ("COMPLETED", "FAILED")}

    assert runs["COMPLETED"].snapshot.failed_attempt_id == ""
    assert runs["FAILED"].snapshot.failed_attempt_id == runs["FAILED"].task("end").attempt.id


def test_a_finished_run_with_a_rate_limit_announces_its_free_slot():
    run = RunInMemory(plan(noop("n")), limit_key="x")

    assert [(message.subject, message.facts) for message in run.sent_messages] == [
        ("release", {"name": "order", "key": "x"})
    ]


def test_a_held_run_schedules_only_its_first_tasks():
    run = RunInMemory(plan(step("a")), limit_key="x", is_held=True)
    assert run.task("a").attempt.visible_at > 10**15

    run.later(5).apply(start_held_run)

    assert run.task("a").attempt.visible_at == 5_000


def test_a_held_run_without_a_worker_task_starts_on_release():
    run = RunInMemory(plan(noop("n"), step("a")), limit_key="x", is_held=True)
    assert run.statuses == {}

    run.apply(start_held_run)

    assert run.statuses == {"n": "COMPLETED", "a": "SCHEDULED"}


def test_an_undecidable_run_fails_with_a_reason():
    run = RunInMemory(plan(step("a"), outputParameters={"n": 1}, failureWorkflow="cleanup"))

    run.apply(commands.FailUndecidableRun("It makes no sense."))

    assert (run.status, run.snapshot.reason, run.snapshot.output, run.started) == (
        "FAILED",
        "It makes no sense.",
        {},
        [],
    )


def test_a_completed_run_cannot_be_retried():
    run = RunInMemory(plan(step("a"))).completes("a")

    with pytest.raises(NotAllowedInState):
        run.retry()
