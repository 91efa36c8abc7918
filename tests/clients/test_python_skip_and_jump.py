"""The Python SDK's workflow client: skip, jump, state, bulk, and administrative calls."""

import pytest
from conductor.client.http.api.task_resource_api import TaskResourceApi
from conductor.client.http.api.workflow_bulk_resource_api import WorkflowBulkResourceApi
from conductor.client.http.models import SkipTaskRequest
from conductor.client.http.models.correlation_ids_search_request import CorrelationIdsSearchRequest
from conductor.client.http.models.start_workflow_request import IdempotencyStrategy, StartWorkflowRequest
from conductor.client.http.models.task_result import TaskResult
from conductor.client.http.models.workflow_state_update import WorkflowStateUpdate
from conductor.client.http.rest import ApiException

from tests.clients.shop_workflow import Shop


@pytest.fixture
def resource(shop: Shop):
    """Return the SDK's resource class for endpoints that the workflow client does not cover."""
    return shop.workflows.workflowResourceApi


@pytest.fixture
def bulk(resource) -> WorkflowBulkResourceApi:
    return WorkflowBulkResourceApi(resource.api_client)


def states(shop: Shop, run_id: str) -> dict[str, str]:
    return {task.reference_task_name: task.status for task in shop.show(run_id).tasks}


def test_a_step_is_skipped_with_a_given_output(shop: Shop):
    shop.define("cut", "sew", "pack")
    run_id = shop.start()
    given = SkipTaskRequest(task_input={"who": None}, task_output={"seams": [1, 2], "text": "it's done", "ok": True})

    shop.workflows.skip_task_from_workflow(run_id, "sew_ref", given)
    shop.report(shop.take("cut"))

    sewn = next(task for task in shop.show(run_id).tasks if task.task_def_name == "sew")
    assert (sewn.status, sewn.input_data) == ("SKIPPED", {"who": None})
    assert sewn.output_data == {"seams": [1, 2], "text": "it's done", "ok": True}
    assert shop.take("pack").workflow_instance_id == run_id


def test_a_step_is_skipped_without_an_output(shop: Shop):
    shop.define("cut", "sew")
    run_id = shop.start()

    shop.workflows.skip_task_from_workflow(run_id, "sew_ref", SkipTaskRequest())
    shop.report(shop.take("cut"))

    assert shop.wait_for_end(run_id).status == "COMPLETED"


def test_an_executed_step_cannot_be_skipped(shop: Shop):
    shop.define("cut")
    run_id = shop.start()

    with pytest.raises(ApiException) as refused:
        shop.workflows.skip_task_from_workflow(run_id, "cut_ref", SkipTaskRequest())

    assert refused.value.status == 409


def test_a_jump_continues_at_the_step(shop: Shop, resource):
    shop.define("cut", "sew", "pack")
    run_id = shop.start()

    resource.jump_to_task({"size": 5}, run_id, task_reference_name="pack_ref")

    assert states(shop, run_id) == {"cut_ref": "SKIPPED", "sew_ref": "SKIPPED", "pack_ref": "SCHEDULED"}
    assert shop.take("pack").input_data["size"] == 5


def test_variables_are_updated(shop: Shop):
    shop.define("cut")
    run_id = shop.start()

    shop.workflows.update_variables(run_id, {"total": 3})

    assert shop.show(run_id).variables == {"total": 3}


def test_the_state_is_updated(shop: Shop):
    shop.define("cut", "sew")
    run_id = shop.start()
    result = TaskResult(workflow_instance_id=run_id, task_id="x", status="COMPLETED", output_data={"n": 1})
    update = WorkflowStateUpdate(task_reference_name="cut_ref", task_result=result, variables={"total": 3})

    run = shop.workflows.update_state(run_id, update, wait_until_task_ref_names=["cut_ref"], wait_for_seconds=1)

    assert (run.workflow_id, run.status, run.variables) == (run_id, "RUNNING", {"total": 3})
    assert states(shop, run_id) == {"cut_ref": "COMPLETED", "sew_ref": "SCHEDULED"}


def test_a_released_task_is_dispatched_again(shop: Shop, resource):
    shop.define("cut")
    run_id = shop.start()
    shop.report(shop.take("cut"), "IN_PROGRESS", callback_after_seconds=600)

    resource.reset_workflow(run_id)

    assert shop.take("cut").workflow_instance_id == run_id


def test_deciding_again_has_no_effect(shop: Shop, resource):
    shop.define("cut")
    run_id = shop.start()

    resource.decide(run_id)

    assert states(shop, run_id) == {"cut_ref": "SCHEDULED"}


def test_pending_tasks_are_counted(shop: Shop, resource):
    shop.define("cut")
    shop.start()

    assert str(TaskResourceApi(resource.api_client).requeue_pending_task("cut")) == "1"


def test_several_workflows_are_handled_in_one_request(shop: Shop, bulk):
    shop.policy("cut", retry_count=0)
    shop.define("cut")
    ids = [shop.start() for _ in range(3)]

    paused = bulk.pause_workflow([*ids, "nobody"])
    resumed = bulk.resume_workflow(ids)
    ended = bulk.terminate(ids, reason="enough")
    retried = bulk.retry(ids[:1])

    assert (paused.bulk_successful_results, list(paused.bulk_error_results)) == (ids, ["nobody"])
    assert resumed.bulk_successful_results == ended.bulk_successful_results == ids
    assert retried.bulk_successful_results == ids[:1]
    assert [shop.show(id).status for id in ids] == ["RUNNING", "TERMINATED", "TERMINATED"]
    assert shop.show(ids[1]).reason_for_incompletion == "enough"


def test_workflows_of_several_names_are_found_by_correlation_id(shop: Shop):
    shop.define("cut")
    shop.define("cut", name="refund")
    order, refund = shop.start(correlation_id="A-1"), shop.start("refund", correlation_id="A-1")
    ended = shop.start(correlation_id="A-2")
    shop.workflows.terminate_workflow(ended)
    asked = CorrelationIdsSearchRequest(["A-1", "A-2"], ["order", "refund"])

    running = shop.workflows.get_by_correlation_ids_in_batch(asked)
    every = shop.workflows.get_by_correlation_ids_in_batch(asked, include_completed=True, include_tasks=True)

    assert [run.workflow_id for run in running["A-1"]] == [order, refund]
    assert running["A-2"] == []
    assert [run.workflow_id for run in every["A-2"]] == [ended]
    assert len(every["A-1"][0].tasks) == 1


def test_running_workflows_are_listed(shop: Shop, resource):
    shop.define("cut")
    open_one, ended = shop.start(), shop.start()
    shop.workflows.terminate_workflow(ended)

    assert resource.get_running_workflow("order") == [open_one]


def test_a_failure_workflow_is_started_on_request(shop: Shop):
    shop.define("put_back", name="undo")
    shop.define("cut", failure_workflow="undo")
    run_id = shop.start()

    shop.workflows.terminate_workflow(run_id, reason="enough", trigger_failure_workflow=True)

    assert shop.take("put_back").input_data is not None
    assert "conductor.failure_workflow" in shop.show(run_id).output


def test_a_key_starts_one_workflow(shop: Shop):
    shop.define("cut")

    def start(strategy: IdempotencyStrategy) -> str:
        return shop.start(idempotency_key="k", idempotency_strategy=strategy)

    first = start(IdempotencyStrategy.FAIL)

    assert start(IdempotencyStrategy.RETURN_EXISTING) == first
    with pytest.raises(ApiException) as refused:
        start(IdempotencyStrategy.FAIL)
    assert refused.value.status == 409
    assert shop.workflows.start_workflow(StartWorkflowRequest(name="order", idempotency_key="other")) != first


def test_a_running_workflow_moves_to_another_version(shop: Shop, resource):
    shop.define("cut", "sew")
    run_id = shop.start()
    shop.report(shop.take("cut"))
    newer = shop.written("cut", "iron", "sew", "pack")
    newer.version = 2
    newer.register(overwrite=True)

    asked = {"name": "order", "version": 2, "taskOutput": {"iron_ref": {"hot": True}}, "workflowInput": {"size": 9}}
    resource.upgrade_running_workflow_to_version(asked, run_id)
    shop.report(shop.take("sew"))

    run = shop.show(run_id)
    assert (run.workflow_version, run.input) == (2, {"size": 9})
    assert {task.task_def_name: task.status for task in run.tasks} == {
        "cut": "COMPLETED", "sew": "COMPLETED", "iron": "SKIPPED", "pack": "SCHEDULED",
    }  # fmt: skip
    assert shop.take("pack").input_data["size"] == 9
