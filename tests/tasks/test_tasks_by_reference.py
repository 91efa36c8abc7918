"""Tasks that are ended by their reference name (api §1.4), and their logs."""

import pytest

from tests.builders import human, simple, step_of


@pytest.fixture
def workflow_id(api, clock):
    """Return the id of a workflow that waits for a person."""
    api.define(human("approve"), simple("ship"))
    return api.start()


def test_an_open_task_is_ended_by_its_name(api, workflow_id):
    reply = api.post(f"/tasks/{workflow_id}/approve/COMPLETED", {"by": "ann"})

    task = api.workflow(workflow_id)["tasks"][0]
    assert (reply.status_code, reply.content.decode()) == (200, task["taskId"])
    assert (task["status"], task["outputData"]) == ("COMPLETED", {"by": "ann"})


def test_output_is_merged_into_the_existing_one(api, workflow_id):
    api.post(f"/tasks/{workflow_id}/approve/IN_PROGRESS", {"a": 1, "b": 1})

    api.post(f"/tasks/{workflow_id}/approve/COMPLETED", {"b": 2})

    assert api.workflow(workflow_id)["tasks"][0]["outputData"] == {"a": 1, "b": 2}


@pytest.mark.parametrize("reference", ["nobody", "ship", "approve__1"])
def test_a_reference_without_a_task_is_not_found(api, workflow_id, reference):
    reply = api.post(f"/tasks/{workflow_id}/{reference}/COMPLETED", {"by": "ann"})

    message = f"Found no running task {reference} of workflow {workflow_id} to update"
    assert (reply.status_code, reply.json()["message"]) == (404, message)


def test_a_reference_in_an_unknown_workflow_is_not_found(api):
    assert api.post("/tasks/nobody/approve/COMPLETED", {}).status_code == 404


def test_a_repeated_report_on_a_task_that_has_ended_is_answered_with_an_empty_body(api, workflow_id):
    api.post(f"/tasks/{workflow_id}/approve/COMPLETED", {"by": "ann"})

    reply = api.post(f"/tasks/{workflow_id}/approve/COMPLETED", {"by": "bob"})

    assert api.workflow(workflow_id)["tasks"][0]["outputData"] == {"by": "ann"}
    assert (reply.status_code, reply.content, reply["Content-Length"]) == (200, b"", "0")
    assert "Content-Type" not in reply


def test_the_workflow_is_returned_on_request(api, workflow_id):
    reply = api.post(f"/tasks/{workflow_id}/approve/COMPLETED/sync", {"by": "ann"})

    assert reply.json()["workflowId"] == workflow_id
    assert [task["referenceTaskName"] for task in reply.json()["tasks"]] == ["approve", "ship"]


def test_the_workflow_is_returned_only_if_a_task_was_open(api, workflow_id):
    assert api.post(f"/tasks/{workflow_id}/ship/COMPLETED/sync", {}).status_code == 404
    assert api.post("/tasks/nobody/approve/COMPLETED/sync", {}).status_code == 404


def test_a_task_of_a_loop_is_found_with_and_without_its_iteration(api):
    api.define(step_of("DO_WHILE", "loop", loopCondition="false", loopOver=[human("approve")]))
    with_turn, without = api.start(), api.start()

    assert api.post(f"/tasks/{with_turn}/approve__1/COMPLETED", {}).content
    assert api.post(f"/tasks/{without}/approve/COMPLETED", {}).content


def test_tasks_whose_references_have_two_underscores_are_found(api):
    inner = step_of("DO_WHILE", "in__2", loopCondition="false", loopOver=[human("ask__a__7")])
    api.define(
        human("__first_1"),
        step_of("DO_WHILE", "out__er", loopCondition="false", loopOver=[inner]),
        human("last__"),
    )
    run = api.start()

    for name in ("__first_1", "ask__a__7__1__1", "last__"):
        assert [task["referenceTaskName"] for task in api.workflow(run)["tasks"]][-1] == name
        found = api.get("/tasks/search", query=f"workflowId={run} AND referenceTaskName='{name}'").json()
        assert found["totalHits"] == 1
        assert api.post(f"/tasks/{run}/{name}/COMPLETED", {}).content
    assert api.workflow(run)["status"] == "COMPLETED"


def test_an_unknown_status_is_refused(api, workflow_id):
    assert api.post(f"/tasks/{workflow_id}/approve/DONE", {}).status_code == 400


LINES = {
    "as it is": (b"hello \xc3\xa9", "hello é"),
    "as a JSON string": (b'"he said \\"hi\\""', 'he said "hi"'),
    "escaped, without quotes": (b'he said \\"hi\\"', 'he said \\"hi\\"'),
    "a number": (b"123", "123"),
    "an object": (b'{"a": 1}', '{"a": 1}'),
    "no UTF-8, and a NUL": (b"a\xff\x00b", "a\ufffdb"),
    "nothing": (b"", ""),
}


@pytest.mark.parametrize("case", LINES)
def test_a_log_line_is_stored_in_every_format_of_clients(api, workflow_id, clock, case):
    sent, kept = LINES[case]
    task_id = api.workflow(workflow_id)["tasks"][0]["taskId"]

    reply = api.post(f"/tasks/{task_id}/log", sent)

    assert (reply.status_code, reply.content, reply.has_header("Content-Type")) == (200, b"", False)
    assert api.get(f"/tasks/{task_id}/log").json() == [{"log": kept, "taskId": task_id, "createdTime": clock.now()}]


def test_a_log_line_of_an_unknown_task_is_refused(api):
    reply = api.post("/tasks/some-id/log", b"lost")

    assert (reply.status_code, reply.json()["message"]) == (404, "No such task found by id: some-id")
    assert api.get("/tasks/some-id/log").status_code == 204


def test_a_task_without_lines_is_answered_with_an_empty_body(api):
    assert api.get("/tasks/some-id/log").status_code == 204
