"""Skip, jump, variables, state: as the clients spell them (api §2.1, §8.3)."""

import json
from urllib.parse import quote

import pytest

from tests.builders import simple, wait

GIVEN = {"taskInput": {"a": None, "b": True}, "taskOutput": {"x": "it's", "n": [1, {"q": 2.5}]}}


@pytest.fixture
def running(api):
    """Start a workflow of three steps that waits at the first."""
    api.define(simple("one"), simple("two"), simple("three"))
    return api.start()


def task(api, workflow_id, ref):
    return next(task for task in api.workflow(workflow_id)["tasks"] if task["referenceTaskName"] == ref)


SPELLINGS = {
    "a JSON body": ("", json.dumps(GIVEN).encode(), "application/json"),
    "Python text in the query": (f"?skipTaskRequest={quote(str(GIVEN))}", b"{}", "application/json"),
    "JSON in the query": (f"?skipTaskRequest={quote(json.dumps(GIVEN))}", b"", "application/json"),
    "maps in the query": (
        f"?taskInput={quote(json.dumps(GIVEN['taskInput']))}&taskOutput={quote(json.dumps(GIVEN['taskOutput']))}",
        b"",
        "application/json",
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_skip_is_understood_however_it_is_spelled(api, running, spelling):
    query, body, kind = SPELLINGS[spelling]

    reply = api.client.generic("PUT", f"/api/workflow/{running}/skiptask/two{query}", body, kind)

    assert (reply.status_code, reply.content) == (200, b"")
    skipped = task(api, running, "two")
    assert (skipped["status"], skipped["inputData"], skipped["outputData"]) == (
        "SKIPPED", GIVEN["taskInput"], GIVEN["taskOutput"],
    )  # fmt: skip


def test_a_skip_accepts_a_form(api, running):
    kind = "application/x-www-form-urlencoded"

    api.client.generic("PUT", f"/api/workflow/{running}/skiptask/two", b"taskOutput[x]=1&taskInput[y]=two", kind)

    assert (task(api, running, "two")["outputData"], task(api, running, "two")["inputData"]) == (
        {"x": "1"}, {"y": "two"},
    )  # fmt: skip


def test_a_skip_accepts_the_format_of_the_go_sdk(api, running):
    text = "{map[] map[cause:out of stock count:3 list:[1 two] ok:true deep:map[a:<nil> b:1.5]]}"

    api.put(f"/workflow/{running}/skiptask/two?skipTaskRequest={quote(text)}")

    assert task(api, running, "two")["outputData"] == {
        "cause": "out of stock", "count": 3, "list": [1, "two"], "ok": True, "deep": {"a": None, "b": 1.5},
    }  # fmt: skip


@pytest.mark.parametrize("empty", ["", "?skipTaskRequest=", "?skipTaskRequest={}", "?skipTaskRequest={map[] map[]}"])
def test_a_skip_accepts_an_empty_body(api, running, empty):
    assert api.put(f"/workflow/{running}/skiptask/two{empty}", {}).status_code == 200

    assert (task(api, running, "two")["inputData"], task(api, running, "two")["outputData"]) == ({}, {})


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "{1, 2}",
        "{'taskInput': b'x'}",
        "{'taskInput': 1e999}",
        "{'taskInput': [1]}",
        "__import__('os')",
        "(" * 5000,
        "-" * 60_000 + "1",
        "[" * 60_000,
        "x" * 70_000,
        "{map[a:[ map[]}",
        "{map[x[] map[]]}",
        "{'taskOutput': " + "[" * 150 + "]" * 150 + "}",
        '{"taskOutput": ' + '{"a":' * 300 + "1" + "}" * 300 + "}",
    ],
    ids=lambda text: text[:20],
)
def test_a_skip_that_makes_no_sense_is_refused(api, running, text):
    reply = api.put(f"/workflow/{running}/skiptask/two?skipTaskRequest={quote(text)}")

    assert reply.status_code == 400
    assert reply.json()["message"]


@pytest.mark.parametrize("act", ["skiptask", "jump"])
@pytest.mark.parametrize(("ref", "code"), [("one", 409), ("nobody", 404)])
def test_an_invalid_skip_or_jump_is_rejected(api, running, act, ref, code):
    method = {"skiptask": "PUT", "jump": "POST"}[act]

    assert api.send(method, f"/workflow/{running}/{act}/{ref}", {}).status_code == code
    assert api.send(method, f"/workflow/nobody/{act}/{ref}", {}).status_code == 404


@pytest.mark.parametrize("address", ["three", "%7BtaskReferenceName%7D?taskReferenceName=three"])
def test_a_jump_continues_at_the_step(api, running, address):
    reply = api.post(f"/workflow/{running}/jump/{address}", {"n": 1})

    assert (reply.status_code, reply.content) == (200, b"")
    assert [(t["referenceTaskName"], t["status"]) for t in api.workflow(running)["tasks"]] == [
        ("one", "SKIPPED"), ("two", "SKIPPED"), ("three", "SCHEDULED"),
    ]  # fmt: skip
    assert task(api, running, "three")["inputData"] == {"n": 1}


@pytest.mark.parametrize("body", [b"[1]", b"nothing", b'"text"'])
def test_a_jump_with_inputs_that_are_no_object_is_refused(api, running, body):
    assert api.post(f"/workflow/{running}/jump/three", body).status_code == 400


def test_a_jump_that_names_no_step_is_refused(api, running):
    assert api.post(f"/workflow/{running}/jump/%7BtaskReferenceName%7D", {}).status_code == 400


def test_a_step_that_cannot_be_entered_with_these_inputs_is_not_jumped_to(api):
    api.define(simple("one"), wait("pause"))
    workflow_id = api.start()

    reply = api.post(f"/workflow/{workflow_id}/jump/pause", {"duration": "soon"})

    assert reply.status_code == 400
    assert "soon" in reply.json()["message"]
    assert len(api.workflow(workflow_id)["tasks"]) == 1


def test_variables_are_merged_into_the_existing_ones(api):
    api.define(
        simple("one"), simple("two", inputParameters={"v": "${workflow.variables.v}"}), variables={"v": 1, "w": 2}
    )
    workflow_id = api.start()

    reply = api.post(f"/workflow/{workflow_id}/variables", {"v": 3})
    api.report(api.poll("one")[0])

    assert (reply.status_code, reply.json()["variables"]) == (200, {"v": 3, "w": 2})
    assert reply.json()["workflowId"] == workflow_id
    assert task(api, workflow_id, "two")["inputData"] == {"v": 3}


@pytest.mark.parametrize(
    ("body", "code"), [(b"", 200), ({}, 200), ([], 400), ({"v": "x" * 300_000}, 400)], ids=["none", "{}", "[]", "large"]
)
def test_invalid_variables_are_rejected(api, running, body, code):
    assert api.post(f"/workflow/{running}/variables", body).status_code == code


def test_variables_of_an_ended_run_cannot_change(api, running):
    api.delete(f"/workflow/{running}")

    assert api.post(f"/workflow/{running}/variables", {"v": 1}).status_code == 409
    assert api.post("/workflow/nobody/variables", {"v": 1}).status_code == 404


def result(status="COMPLETED", **fields):
    return {"workflowInstanceId": "x", "taskId": "x", "status": status, **fields}


def test_a_state_update_reports_on_a_task_and_sets_variables(api, running):
    update = {"taskReferenceName": "one", "taskResult": result(outputData={"n": 1}), "variables": {"v": 2}}

    reply = api.post(f"/workflow/{running}/state?requestId=r-1", update)

    run = reply.json()
    assert (run["responseType"], run["requestId"], run["workflowId"]) == ("TARGET_WORKFLOW", "r-1", running)
    assert (run["status"], run["variables"]) == ("RUNNING", {"v": 2})
    assert [(t["referenceTaskName"], t["status"]) for t in run["tasks"]] == [("one", "COMPLETED"), ("two", "SCHEDULED")]
    assert run["tasks"][0]["outputData"] == {"n": 1}


def test_a_state_update_waits_on_request(api):
    api.define(simple("one"), wait("pause"))
    workflow_id = api.start()
    update = {"taskReferenceName": "one", "taskResult": result()}

    stands = api.post(f"/workflow/{workflow_id}/state?waitForSeconds=5", update).json()
    api.define(simple("one"), simple("two"))
    other = api.start()
    reached = api.post(f"/workflow/{other}/state?waitUntilTaskRef=one", update).json()

    assert (stands["signalTimeout"], stands["tasks"][1]["status"]) == (False, "IN_PROGRESS")
    assert (reached["signalTimeout"], reached["tasks"][1]["status"]) == (False, "SCHEDULED")


def test_a_state_update_may_name_the_task_by_its_id(api, running):
    update = {"taskResult": result(taskId=task(api, running, "one")["taskId"])}

    assert api.post(f"/workflow/{running}/state", update).status_code == 200
    assert task(api, running, "one")["status"] == "COMPLETED"


def test_a_state_update_without_a_status_completes_the_task(api, running):
    update = {"taskReferenceName": "one", "taskResult": {"outputData": {"n": 1}}}

    assert api.post(f"/workflow/{running}/state", update).status_code == 200
    assert (task(api, running, "one")["status"], task(api, running, "one")["outputData"]) == ("COMPLETED", {"n": 1})


def test_a_state_update_can_change_variables_only(api, running):
    assert api.post(f"/workflow/{running}/state", {"variables": {"v": 2}}).json()["variables"] == {"v": 2}


def test_a_state_update_is_atomic(api, running):
    update = {"taskReferenceName": "two", "taskResult": result(), "variables": {"v": 2}}

    assert api.post(f"/workflow/{running}/state", update).status_code == 404
    assert api.workflow(running)["variables"] == {}


@pytest.mark.parametrize(
    "update",
    [
        {"taskResult": {}},
        {"taskReferenceName": "one", "taskResult": result("DONE")},
        {"taskResult": result(taskId="")},
        {"variables": 1},
        {"taskResult": [1]},
    ],
)
def test_a_state_update_that_makes_no_sense_is_refused(api, running, update):
    assert api.post(f"/workflow/{running}/state", update).status_code == 400


def test_a_task_released_with_a_delay_is_dispatched_after_a_reset(api, running):
    api.report(api.poll("one")[0], "IN_PROGRESS", callbackAfterSeconds=600)
    assert api.poll("one") == []

    reply = api.post(f"/workflow/{running}/resetcallbacks")

    assert (reply.status_code, reply.content) == (204, b"")
    assert len(api.poll("one")) == 1


def test_callbacks_of_an_ended_run_are_not_reset(api, running):
    api.delete(f"/workflow/{running}")

    assert api.post(f"/workflow/{running}/resetcallbacks").status_code == 409
    assert api.post("/workflow/nobody/resetcallbacks").status_code == 404
