"""The Python SDK starts workflows and waits for them, and signals them."""

import pytest
from conductor.client.http.models.start_workflow_request import StartWorkflowRequest
from conductor.client.http.models.workflow_test_request import TaskMock, WorkflowTestRequest
from conductor.client.workflow.task.simple_task import simple_task
from conductor.client.workflow.task.sub_workflow_task import InlineSubWorkflowTask
from conductor.client.workflow.task.wait_task import WaitTask

from tests.clients.shop_workflow import serve_tasks, worker

STRATEGIES = ("TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT")


@pytest.fixture
def approval(shop):
    """Register a workflow of a task, a signal, and another task."""
    workflow = shop.written("cut") >> WaitTask("approve") >> simple_task("sew", "sew_ref", {})
    workflow.register(overwrite=True)
    return workflow


def test_a_workflow_is_executed_by_its_definition(shop, configuration):
    with serve_tasks(configuration, worker("cut", lambda task: {"pieces": 4})):
        run = shop.written("cut").execute({"size": 2}, wait_for_seconds=20)

    assert (run.status, run.input, run.output) == ("COMPLETED", {"size": 2}, {"pieces": 4})
    assert [task.reference_task_name for task in run.tasks] == ["cut_ref"]


def test_a_workflow_is_executed_until_a_task_of_it_has_ended(shop, configuration):
    shop.define("cut", "sew")
    with serve_tasks(configuration, worker("cut", lambda task: {"pieces": 4})):
        run = shop.workflows.execute_workflow(StartWorkflowRequest(name="order", version=1), "r-1", "cut_ref", 20)

    assert (run.status, run.request_id) == ("RUNNING", "r-1")
    assert [task.status for task in run.tasks] == ["COMPLETED", "SCHEDULED"]


def test_a_workflow_that_exceeds_the_wait_is_returned_in_its_current_state(shop):
    shop.define("cut")

    run = shop.workflows.execute_workflow(StartWorkflowRequest(name="order", version=1), "r-1", "", 1)

    assert (run.status, run.output) == ("RUNNING", {})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_is_understood(shop, configuration, approval, strategy):
    request = StartWorkflowRequest(name="order", version=1)
    with serve_tasks(configuration, worker("cut", lambda task: {})):
        reply = shop.workflows.execute_workflow_with_return_strategy(
            request, wait_for_seconds=20, return_strategy=strategy
        )

    assert (reply.response_type, reply.target_workflow_status) == (strategy, "RUNNING")
    if strategy.startswith("BLOCKING_TASK"):
        assert (reply.reference_task_name, reply.status.value, reply.task_type) == ("approve", "IN_PROGRESS", "WAIT")
    else:
        assert (reply.workflow_id, reply.status) == (reply.target_workflow_id, "RUNNING")


def test_a_signal_ends_the_wait_and_its_consequence_is_waited_for(shop, configuration, approval, executor):
    request = StartWorkflowRequest(name="order", version=1)
    with serve_tasks(configuration, worker("cut", lambda task: {}), worker("sew", lambda task: {"seams": 3})):
        waiting = executor.execute_workflow_with_return_strategy(request, wait_for_seconds=20)
        end = executor.signal(waiting.workflow_id, "COMPLETED", {"by": "ann"})

    assert (end.workflow_id, end.target_workflow_status) == (waiting.workflow_id, "COMPLETED")
    assert end.output == {"seams": 3}


def test_an_asynchronous_signal_is_processed(shop, executor):
    (shop.written() >> WaitTask("approve") >> simple_task("sew", "sew_ref", {})).register(overwrite=True)
    run_id = shop.start()

    executor.signal_async(run_id, "COMPLETED", {"by": "ann"})

    assert shop.take("sew").workflow_instance_id == run_id
    assert shop.show(run_id).tasks[0].output_data == {"by": "ann"}


def test_a_workflow_is_called_like_an_api(shop, configuration):
    shop.define("cut")
    with serve_tasks(configuration, worker("cut", lambda task: {"pieces": task.input_data["size"]})):
        # The SDK puts it into a header as it is, and numbers are no headers.
        output = shop.workflows.workflowResourceApi.execute_workflow_as_api({"size": 4}, "order", wait_for_seconds="20")

    assert output == {"pieces": 4}


def test_a_workflow_is_tested(shop):
    child = shop.written("iron", name="child")
    workflow = shop.written("cut", "sew") >> InlineSubWorkflowTask("inner", child)
    # Where a field is not given, the SDK sends the text of a Python object.
    again = TaskMock(status="COMPLETED", output={"pieces": 4}, execution_time=2000, queue_wait_time=1000)
    mocks = {"cut_ref": [TaskMock(status="FAILED"), again], "sew_ref": [TaskMock(output={"seams": 3})]}
    inner = WorkflowTestRequest(name="child", task_ref_to_mock_output={"iron_ref": [TaskMock(output={"flat": True})]})
    shop.policy("cut", retry_count=1, retry_delay_seconds=5)

    run = shop.workflows.test_workflow(
        WorkflowTestRequest(
            name="order",
            version=1,
            workflow_def=workflow.to_workflow_def(),
            input={"size": 2},
            task_ref_to_mock_output=mocks,
            sub_workflow_test_request={"inner": inner},
        )
    )

    assert (run.status, run.output["flat"]) == ("COMPLETED", True)
    assert [task.status for task in run.tasks] == ["FAILED", "COMPLETED", "COMPLETED", "COMPLETED"]
    assert run.tasks[1].end_time - run.tasks[1].start_time == 2000
