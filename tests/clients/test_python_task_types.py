"""The task types that the Python SDK has classes for, and that the server does by itself."""

from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.task.json_jq_task import JsonJQTask

from .shop import Shop


def written(shop: Shop, *tasks) -> ConductorWorkflow:
    """A workflow of these tasks that the server does not know yet."""
    workflow = shop.written()
    for task in tasks:
        workflow >> task
    return workflow


def test_a_jq_task_transforms_its_input(shop: Shop):
    task = JsonJQTask("totals", ".orders[] | .total")
    task.input_parameter("orders", "${workflow.input.orders}")

    run = shop.end_of(written(shop, task).start_workflow_with_input({"orders": [{"total": 5}, {"total": 7}]}))

    assert (run.status, run.output) == ("COMPLETED", {"result": 5, "resultList": [5, 7]})
