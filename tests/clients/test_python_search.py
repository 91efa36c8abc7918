"""The Python SDK's searches."""

import pytest
from conductor.client.http.api.task_resource_api import TaskResourceApi
from conductor.client.http.api.workflow_resource_api import WorkflowResourceApi
from conductor.client.http.api_client import ApiClient
from conductor.client.http.rest import ApiException

from tests.clients.shop_workflow import Shop


@pytest.fixture
def orders(shop: Shop) -> list[str]:
    """Start three orders, the newest last; the first fails."""
    shop.policy("cut", retry_count=0)
    shop.define("cut")
    started = [shop.start(correlation_id=f"A-{number}", input={"size": number}) for number in range(3)]
    for _ in started:
        task = shop.take("cut")
        if task.workflow_instance_id == started[0]:
            shop.report(task, "FAILED", reason_for_incompletion="no saw")
    return started


def test_workflows_are_searched(shop: Shop, orders):
    found = shop.workflows.search(query="status = FAILED AND workflowType IN (order)")

    [order] = found.results
    assert (order.workflow_id, order.status, order.workflow_type) == (orders[0], "FAILED", "order")
    assert (order.correlation_id, order.version, order.failed_reference_task_names) == ("A-0", 1, "cut_ref")
    assert order.start_time.endswith("Z") and order.end_time.endswith("Z")
    assert "no saw" in order.reason_for_incompletion


def test_workflows_are_read_page_by_page(shop: Shop, orders):
    first = shop.workflows.search(start=0, size=2)
    second = shop.workflows.search(start=2, size=2, query_id=first.query_id)

    assert {order.workflow_id for order in [*first.results, *second.results]} == set(orders)
    assert (len(first.results), len(second.results)) == (2, 1)


def test_workflows_are_found_by_free_text_and_by_input(shop: Shop, orders):
    by_text = shop.workflows.search(free_text="A-1")
    by_input = shop.workflows.search(query="input.size >= 1", free_text="*")

    assert [order.workflow_id for order in by_text.results] == [orders[1]]
    assert {order.workflow_id for order in by_input.results} == set(orders[1:])


def test_the_executor_searches_too(executor, shop: Shop, orders):
    found = executor.search(start=0, size=10, free_text="*", query="correlationId = 'A-2'")

    assert [order.workflow_id for order in found.results] == [orders[2]]


def test_tasks_are_searched(configuration, shop: Shop, orders):
    api = TaskResourceApi(ApiClient(configuration))

    summaries = api.search1(query="status = FAILED", sort="scheduledTime:DESC", start=0, size=5, free_text="*")
    whole = api.search_v21(query=f"workflowId = {orders[1]}")

    [failed] = summaries.results
    assert (summaries.total_hits, failed.workflow_id, failed.task_def_name) == (1, orders[0], "cut")
    assert (failed.reason_for_incompletion, failed.correlation_id) == ("no saw", "A-0")
    [task] = whole.results
    assert (task.workflow_instance_id, task.status, task.reference_task_name) == (orders[1], "IN_PROGRESS", "cut_ref")
    assert task.input_data["size"] == 1


def test_an_invalid_query_is_rejected_with_an_explanation(configuration, server):
    with pytest.raises(ApiException) as refused:
        WorkflowResourceApi(ApiClient(configuration)).search(query="status = ")

    assert refused.value.status == 400
    assert "expected a value" in refused.value.message
