"""Failure workflows: when one starts, and its exact input (execution §6)."""

import pytest

from conductor_app.runs.models import Run
from tests.builders import definition, policy, step, sub_workflow, terminate
from tests.scenario import RunView, Scenario

CLEANUP = definition(step("sweep", inputs={"failed": "${workflow.input.failedWorkflow.workflowId}"}), name="cleanup")


def failure_runs(name: str = "cleanup") -> list[Run]:
    return list(Run.objects.filter(name=name).order_by("id"))


def scenario(clock, *steps, **fields) -> Scenario:
    return Scenario(clock, *(steps or [step("pay")]), **{"others": [CLEANUP], "failureWorkflow": "cleanup", **fields})


def test_its_input_is_the_failed_run_s_with_exactly_these_keys_more(clock):
    failed = scenario(clock, input={"order": 7}, start={"correlation_id": "c", "domains": {"x": "blue"}, "priority": 3})

    failed.worker("pay").fails("no funds")

    [run] = failure_runs()
    assert set(run.input) == {"order", "workflowId", "reason", "failureStatus", "failureTaskId", "failedWorkflow"}
    assert (run.input["order"], run.input["workflowId"], run.input["failureStatus"]) == (7, failed.id, "FAILED")
    assert run.input["failureTaskId"] == failed.task("pay").id
    assert run.input["reason"] == failed.reason
    assert run.input["reason"].endswith("failed with status: FAILED and reason: 'no funds'")
    assert (run.correlation_id, run.domains, run.priority, run.parent_id) == ("c", {"x": "blue"}, 0, "")
    assert failed.output["conductor.failure_workflow"] == run.id


def test_it_receives_the_complete_failed_execution(clock):
    failed = scenario(clock)
    failed.worker("pay").fails("no funds")

    document = failure_runs()[0].input["failedWorkflow"]

    assert (document["workflowId"], document["status"], document["workflowName"]) == (failed.id, "FAILED", "order")
    assert [task["referenceTaskName"] for task in document["tasks"]] == ["pay"]


def test_its_first_step_can_already_read_the_failed_execution(clock):
    failed = scenario(clock)
    failed.worker("pay").fails()

    assert RunView(failure_runs()[0].id).task("sweep").input == {"failed": failed.id}


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        pytest.param([step("pay", policy=policy(poll_seconds=10))], "TIMED_OUT", id="a task that timed out"),
        pytest.param([terminate("end", "FAILED")], "FAILED", id="a TERMINATE that fails"),
        pytest.param([terminate("end", "TERMINATED")], "TERMINATED", id="a TERMINATE that terminates"),
        pytest.param([sub_workflow("s", "nobody")], "FAILED", id="a step that cannot be entered"),
    ],
)
def test_other_bad_ends_start_it_too(clock, steps, status):
    scenario(clock, *steps).later(10)

    assert [run.input["failureStatus"] for run in failure_runs()] == [status]


def test_the_timeout_of_the_run_starts_it_without_naming_a_task(clock):
    scenario(clock, timeoutSeconds=10, timeoutPolicy="TIME_OUT_WF").later(10)

    [run] = failure_runs()
    assert run.input["failureStatus"] == "TIMED_OUT"
    assert "failureTaskId" not in run.input


def test_success_starts_none(clock):
    scenario(clock).worker("pay").completes()

    assert failure_runs() == []


@pytest.mark.parametrize(("asked_for", "count"), [(False, 0), (True, 1)])
def test_a_terminate_by_an_operator_starts_it_only_on_request(clock, asked_for, count):
    scenario(clock).terminate("enough", with_failure=asked_for)

    assert len(failure_runs()) == count


def test_a_child_and_its_parent_each_start_their_own(clock):
    child = definition(step("x"), name="child", failureWorkflow="cleanup")
    parent = definition(step("own"), name="parents_cleanup")
    failed = scenario(clock, sub_workflow("s"), others=[CLEANUP, parent, child], failureWorkflow="parents_cleanup")

    failed.worker("x").fails()

    assert failed.status == "FAILED"
    assert [run.input["workflowId"] for run in failure_runs()] == [failed.task("s").child_id]
    assert [run.input["workflowId"] for run in failure_runs("parents_cleanup")] == [failed.id]


def test_a_child_that_is_stopped_by_its_parent_starts_none(clock):
    child = definition(step("x"), name="child", failureWorkflow="cleanup")
    parent = Scenario(clock, sub_workflow("s"), others=[CLEANUP, child])

    parent.terminate("enough")

    assert parent.child("s").status == "TERMINATED"
    assert failure_runs() == []


def test_its_name_can_be_an_expression_on_the_input(clock):
    scenario(clock, failureWorkflow="$workflow.input.then", input={"then": "cleanup"}).worker("pay").fails()

    assert len(failure_runs()) == 1


@pytest.mark.parametrize("given", [{}, {"then": 7}, {"then": "nobody"}])
def test_the_output_contains_the_reason_if_it_cannot_start(clock, given):
    failed = scenario(clock, failureWorkflow="$workflow.input.then", input=given)
    failed.worker("pay").fails()

    assert failed.status == "FAILED"
    assert failed.output["conductor.failure_workflow"].startswith("Error workflow ")
    assert "failed to start" in failed.output["conductor.failure_workflow"]


def test_a_version_may_be_named(clock):
    newer = {**CLEANUP, "version": 2}
    scenario(clock, others=[CLEANUP, newer], failureWorkflowVersion=1).worker("pay").fails()

    assert [run.version for run in failure_runs()] == [1]


def test_a_retried_run_that_fails_again_starts_it_again(clock):
    failed = scenario(clock)
    failed.worker("pay").fails()
    failed.retry()
    failed.worker("pay").fails()

    assert len(failure_runs()) == 2


def test_the_payloads_of_a_large_execution_are_omitted_from_its_input(clock, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = 100_000
    failed = scenario(clock, step("load", "work"), step("more", "work"), step("pay"), input={"order": 7})
    for _ in range(2):
        failed.worker("work").completes(rows="x" * 60_000)

    failed.worker("pay").fails("no funds")

    [run] = failure_runs()
    document = run.input["failedWorkflow"]
    assert run.input_size < 50_000 and run.input["order"] == 7
    assert [task["referenceTaskName"] for task in document["tasks"]] == ["load", "more", "pay"]
    assert {str(task["outputData"]) for task in document["tasks"]} == {"{}"}
    assert document["conductor.payloadsOmitted"] == (
        f"The payloads exceed 100000 bytes. Read them with GET /api/workflow/{failed.id}."
    )


def test_the_tasks_of_a_very_long_execution_are_omitted_from_its_input(clock, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = 6_000
    failed = scenario(clock, step("load", "work"), step("more", "work"), step("last", "work"), step("pay"))
    for _ in range(3):
        failed.worker("work").completes()

    failed.worker("pay").fails("no funds")

    document = failure_runs()[0].input["failedWorkflow"]
    assert (document["workflowId"], document["status"], document["tasks"]) == (failed.id, "FAILED", [])
    assert document["conductor.payloadsOmitted"].startswith("The payloads and tasks exceed 6000 bytes.")
