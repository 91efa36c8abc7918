"""Event handlers through the official Python SDK."""

import pytest
from conductor.client.http.api.event_resource_api import EventResourceApi
from conductor.client.http.api_client import ApiClient
from conductor.client.http.rest import ApiException
from conductor.client.workflow.conductor_workflow import ConductorWorkflow
from conductor.client.workflow.task.event_task import ConductorEventTask
from conductor.client.workflow.task.simple_task import SimpleTask

from tests.clients.wait_until import eventually

SINK = "conductor:greet:hello"
START = {"action": "start_workflow", "start_workflow": {"name": "listen", "input": {"who": "${who}"}}}
HANDLER = {"name": "h", "event": SINK, "actions": [START], "active": True}


@pytest.fixture
def handlers(configuration) -> EventResourceApi:
    return EventResourceApi(ApiClient(configuration))


def test_a_handler_is_created_found_updated_and_deleted(handlers):
    handlers.add_event_handler(HANDLER)

    assert [each.name for each in handlers.get_event_handlers()] == ["h"]
    [found] = handlers.get_event_handlers_for_event(SINK, active_only=True)
    assert (found.event, found.active, found.actions[0].action) == (SINK, True, "start_workflow")

    handlers.update_event_handler({**HANDLER, "active": False})
    assert handlers.get_event_handlers_for_event(SINK, active_only=True) == []
    handlers.remove_event_handler_status("h")
    assert handlers.get_event_handlers() == []


def test_refusals_reach_the_client_with_their_status(handlers):
    handlers.add_event_handler(HANDLER)

    for call, status in (
        (lambda: handlers.add_event_handler(HANDLER), 409),
        (lambda: handlers.add_event_handler({"name": "x"}), 400),
        (lambda: handlers.update_event_handler({**HANDLER, "name": "x"}), 404),
        (lambda: handlers.remove_event_handler_status("x"), 404),
    ):
        with pytest.raises(ApiException) as refused:
            call()
        assert refused.value.status == status


def test_a_workflow_publishes_an_event_that_starts_another(handlers, executor, workflows, tasks):
    handlers.add_event_handler(HANDLER)
    (ConductorWorkflow(executor, "listen", 1) >> SimpleTask("listen", "listen")).register(overwrite=True)
    event_task = ConductorEventTask("tell", "hello")
    event_task.input_parameters["who"] = "${workflow.input.who}"
    (ConductorWorkflow(executor, "greet", 1) >> event_task).register(overwrite=True)

    id = workflows.start_workflow_by_name("greet", {"who": "world"})

    other = eventually(lambda: tasks.poll_task("listen"))
    assert workflows.get_workflow(other.workflow_instance_id, False).input["who"] == "world"
    assert workflows.get_workflow(id, True).tasks[0].output_data["event_produced"] == SINK
