"""Signals, which complete the steps that wait for them (api §1.4)."""

import pytest

from tests.builders import simple, sub_workflow, wait, yield_


@pytest.fixture
def approval(api, clock) -> str:
    """Return the id of a workflow that waits for one signal, then for another."""
    api.define(wait("approve"), wait("confirm"))
    return api.start()


def test_a_signal_ends_the_first_open_wait(api, approval):
    reply = api.post(f"/tasks/{approval}/COMPLETED/signal", {"by": "ann"})

    first, second = api.workflow(approval)["tasks"]
    assert (reply.status_code, reply.content) == (200, b"")
    assert (first["status"], first["outputData"], second["status"]) == ("COMPLETED", {"by": "ann"}, "IN_PROGRESS")


def test_a_signal_is_merged_into_the_output(api, approval):
    api.post(f"/tasks/{approval}/IN_PROGRESS/signal", {"a": 1, "b": 1})
    api.post(f"/tasks/{approval}/COMPLETED/signal", {"b": 2})

    assert api.workflow(approval)["tasks"][0]["outputData"] == {"a": 1, "b": 2}


def test_a_synchronous_signal_returns_its_result(api, approval):
    reply = api.post(f"/tasks/{approval}/COMPLETED/signal/sync?returnStrategy=BLOCKING_TASK", {"by": "ann"}).json()

    assert (reply["referenceTaskName"], reply["targetWorkflowId"]) == ("confirm", approval)

    end = api.post(f"/tasks/{approval}/COMPLETED/signal/sync", {}).json()

    assert (end["responseType"], end["status"], end["signalTimeout"]) == ("TARGET_WORKFLOW", "COMPLETED", False)


def test_a_signal_reaches_the_wait_of_a_child(api, clock):
    api.define(wait("approve"), name="child")
    api.define(sub_workflow("inner", "child", version=1))
    parent = api.start()

    reply = api.post(f"/tasks/{parent}/COMPLETED/signal/sync", {"by": "ann"}).json()

    assert (reply["workflowId"], reply["status"], reply["output"]["by"]) == (parent, "COMPLETED", "ann")


def test_a_signal_without_a_waiting_task_changes_nothing(api, clock):
    api.define(simple("ship"))
    workflow_id = api.start()

    alone = api.post(f"/tasks/{workflow_id}/COMPLETED/signal", {})
    waited = api.post(f"/tasks/{workflow_id}/COMPLETED/signal/sync", {})

    assert (alone.status_code, waited.status_code) == (200, 404)
    assert api.workflow(workflow_id)["tasks"][0]["status"] == "SCHEDULED"


@pytest.mark.parametrize("address", ["signal", "signal/sync"])
def test_an_unknown_workflow_is_not_found(api, clock, address):
    assert api.post(f"/tasks/nobody/COMPLETED/{address}", {}).status_code == 404


@pytest.mark.parametrize("sent", ["SOON/signal", "SOON/signal/sync", "COMPLETED/signal/sync?returnStrategy=ALL"])
def test_an_invalid_signal_changes_nothing(api, approval, sent):
    assert api.post(f"/tasks/{approval}/{sent}", {}).status_code == 400
    assert api.workflow(approval)["tasks"][0]["status"] == "IN_PROGRESS"


@pytest.mark.parametrize("strategy", ["TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT"])
def test_a_yield_acts_as_a_wait_in_all_return_strategies(api, clock, strategy):
    """The Python SDK's signal tests use it this way: execute, then signal until the workflow has ended."""
    yields = [yield_(ref, n=number) for number, ref in enumerate(("first", "second"))]
    api.define(*yields)
    begun = api.post(f"/workflow/execute/order/1?returnStrategy={strategy}", {"name": "order"}).json()
    workflow_id = begun["targetWorkflowId"]

    reply = api.post(f"/tasks/{workflow_id}/COMPLETED/signal/sync?returnStrategy={strategy}", {"by": "ann"}).json()

    assert reply["responseType"] == strategy
    blocking = {"TARGET_WORKFLOW": None, "BLOCKING_WORKFLOW": None}.get(strategy, "second")
    assert reply.get("referenceTaskName") == blocking
    first, second = api.workflow(workflow_id)["tasks"]
    assert (first["status"], first["outputData"], second["status"]) == ("COMPLETED", {"by": "ann"}, "IN_PROGRESS")
    api.post(f"/tasks/{workflow_id}/COMPLETED/signal", {})
    assert api.workflow(workflow_id)["status"] == "COMPLETED"
