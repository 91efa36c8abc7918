"""The task types that the Python SDK has classes for, and that the server does by itself."""

import pytest
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.task.http_poll_task import HttpPollInput, HttpPollTask
from conductor.client.workflow.task.http_task import HttpInput, HttpTask
from conductor.client.workflow.task.json_jq_task import JsonJQTask
from conductor.client.workflow.task.pull_workflow_messages_task import PullWorkflowMessagesTask
from conductor.client.workflow.task.simple_task import simple_task

from tests.clients.shop_workflow import Shop
from tests.recording_web_server import json_answer, running_web_server


@pytest.fixture
def web(settings):
    """Yield a web server that tasks may reach."""
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as web:
        yield web


def written(shop: Shop, *tasks) -> ConductorWorkflow:
    """Return a workflow of these tasks that is not registered."""
    workflow = shop.written()
    for task in tasks:
        workflow >> task
    return workflow


def test_a_jq_task_transforms_its_input(shop: Shop):
    task = JsonJQTask("totals", ".orders[] | .total")
    task.input_parameter("orders", "${workflow.input.orders}")

    run = shop.wait_for_end(written(shop, task).start_workflow_with_input({"orders": [{"total": 5}, {"total": 7}]}))

    assert (run.status, run.output) == ("COMPLETED", {"result": 5, "resultList": [5, 7]})


def test_an_http_task_brings_the_answer(shop: Shop, web):
    web.answers["/a"] = json_answer({"n": 1})
    task = HttpTask("get", HttpInput(uri=f"{web.url}/a"))

    run = shop.wait_for_end(
        written(shop, task).output_parameter("n", "${get.output.response.body.n}").start_workflow_with_input()
    )

    assert (run.status, run.output) == ("COMPLETED", {"n": 1})


def test_an_http_poll_task_polls_until_its_condition_is_true(shop: Shop, web):
    web.answers["/a"] = [json_answer({"done": False}), json_answer({"done": True})]
    condition = "(function(){ return $.output.response.body.done; })();"
    task = HttpPollTask("ask", HttpPollInput(condition, polling_interval=1, uri=f"{web.url}/a"))

    run = shop.wait_for_end(written(shop, task).start_workflow_with_input())

    assert (run.status, run.output["polls"], run.output["response"]["body"]) == ("COMPLETED", 2, {"done": True})


def test_a_sent_message_reaches_the_workflow(shop: Shop):
    run_id = written(shop, PullWorkflowMessagesTask("next")).start_workflow_with_input()

    sent = shop.workflows.workflowResourceApi.send_workflow_message({"said": "hello"}, run_id)

    run = shop.wait_for_end(run_id)
    [message] = run.output["messages"]
    assert (run.status, run.output["count"]) == ("COMPLETED", 1)
    assert (message["id"], message["workflowId"], message["payload"]) == (sent, run_id, {"said": "hello"})


def test_branches_at_the_end_of_a_workflow_are_registered_and_its_run_reports_the_missing_join(shop: Shop):
    a, b, c, d = (simple_task(name, f"{name}_ref", {}) for name in "abcd")
    workflow = written(shop, [[a, b], [c, d]])
    workflow.register(overwrite=True)

    run = shop.wait_for_end(shop.start())

    assert (run.status, run.tasks) == ("FAILED", [])
    assert "not followed by a join task" in run.reason_for_incompletion
