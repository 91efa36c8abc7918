"""The Python SDK's workflow executor, every method of it."""

import pytest
from conductor.client.http.models.correlation_ids_search_request import CorrelationIdsSearchRequest
from conductor.client.http.models.rerun_workflow_request import RerunWorkflowRequest
from conductor.client.http.models.skip_task_request import SkipTaskRequest
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.models.workflow_def import WorkflowDef
from conductor.client.http.models.workflow_task import WorkflowTask
from conductor.client.http.rest import ApiException

from tests.clients.shop_workflow import Shop


@pytest.fixture
def run_id(executor, shop: Shop) -> str:
    """Return the id of a run of two steps that wait for updates: `first` is open."""
    tasks = [WorkflowTask(name=ref, task_reference_name=ref, type="WAIT") for ref in ("first", "second")]
    executor.register_workflow(WorkflowDef(name="order", version=1, tasks=tasks, timeout_seconds=0), overwrite=True)
    return executor.start_workflow(StartWorkflowRequest(name="order", version=1, correlation_id="A-1"))


def test_tasks_are_read_and_updated_by_id_and_by_reference(executor, run_id):
    first = executor.get_workflow(run_id, include_tasks=True).tasks[0]
    assert executor.get_task(first.task_id).reference_task_name == "first"

    executor.update_task(first.task_id, run_id, {"n": 1}, "COMPLETED")
    after = executor.update_task_by_ref_name_sync({"n": 2}, run_id, "second", "COMPLETED")

    assert (after.status, after.output) == ("COMPLETED", {"n": 2})
    assert executor.get_workflow_status(run_id, include_output=True).status == "COMPLETED"


def test_a_run_is_paused_resumed_and_skips_a_task(executor, run_id):
    executor.pause(run_id)
    assert executor.get_workflow(run_id).status == "PAUSED"
    executor.resume(run_id)
    executor.skip_task_from_workflow(run_id, "second", SkipTaskRequest(task_input={}, task_output={"skipped": True}))
    executor.update_task_by_ref_name({"n": 1}, run_id, "first", "COMPLETED")

    assert executor.get_workflow(run_id).status == "COMPLETED"


def test_a_run_is_terminated_retried_rerun_restarted_and_removed(executor, run_id):
    executor.terminate(run_id, reason="enough")
    assert executor.get_workflow(run_id).status == "TERMINATED"
    executor.retry(run_id)
    for ref in ("first", "second"):
        executor.update_task_by_ref_name({}, run_id, ref, "COMPLETED")
    second = executor.get_workflow(run_id, include_tasks=True).tasks[-1].task_id
    assert executor.rerun(RerunWorkflowRequest(re_run_from_task_id=second), run_id) == run_id
    assert executor.get_workflow(run_id, include_tasks=True).tasks[-1].task_id == second
    executor.terminate(run_id)
    executor.restart(run_id)
    assert executor.get_workflow(run_id).status == "RUNNING"
    executor.terminate(run_id)

    executor.remove_workflow(run_id)

    with pytest.raises(ApiException) as gone:
        executor.get_workflow(run_id)
    assert gone.value.status == 404


def test_runs_are_found_by_correlation_id(executor, run_id):
    batch = CorrelationIdsSearchRequest(correlation_ids=["A-1"], workflow_names=["order"])

    assert [run.workflow_id for run in executor.get_by_correlation_ids("order", ["A-1"])["A-1"]] == [run_id]
    with pytest.raises(TypeError, match="include_closed"):
        # The SDK passes an argument that its own client does not accept; the call sends no request.
        executor.get_by_correlation_ids_and_names(batch)
    assert [found.workflow_id for found in executor.search(query="correlationId = 'A-1'").results] == [run_id]


def test_runs_are_started_signaled_and_sent_messages(executor, run_id):
    request = StartWorkflowRequest(name="order", version=1)
    started = executor.start_workflows(request, request)
    assert len(set(started)) == 2

    waiting = executor.execute_workflow_with_return_strategy(request, wait_for_seconds=1)
    assert executor.signal(waiting.workflow_id, "COMPLETED", {"by": "ann"}).target_workflow_status == "RUNNING"
    executor.signal_async(waiting.workflow_id, "COMPLETED", {})
    assert executor.get_workflow(waiting.workflow_id).status == "COMPLETED"
    assert executor.send_message(run_id, {"n": 1})


def test_a_run_is_executed_until_a_task_is_reached(executor, run_id):
    request = StartWorkflowRequest(name="order", version=1)
    by_request = executor.execute_workflow(request, wait_until_task_ref="first", wait_for_seconds=1)
    by_name = executor.execute("order", 1, {"size": 2}, wait_until_task_ref="first", wait_for_seconds=1)

    assert [by_request.status, by_name.status] == ["RUNNING", "RUNNING"]
