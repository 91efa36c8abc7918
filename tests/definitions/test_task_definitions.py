"""Task definitions over the wire (api §1.5, §3.2)."""

import pytest

from conductor_app.processes import sweeps


def test_a_definition_is_returned_as_given_with_its_defaults(api, clock):
    reply = api.post("/metadata/taskdefs", [{"name": "pay", "retryCount": 1, "colour": "red"}])

    shown = api.get("/metadata/taskdefs/pay").json()
    assert (reply.status_code, reply.content, reply.has_header("Content-Type")) == (200, b"", False)
    assert (shown["retryCount"], shown["colour"], shown["retryLogic"]) == (1, "red", "FIXED")
    assert (shown["retryDelaySeconds"], shown["responseTimeoutSeconds"], shown["createTime"]) == (60, 3600, clock.now())
    assert "ownerEmail" not in shown


def test_a_put_creates_an_unknown_definition(api):
    # The JavaScript client registers its workers' definitions by this call alone.
    assert api.put("/metadata/taskdefs", {"name": "pay", "retryCount": 1}).status_code == 200
    assert api.put("/metadata/taskdefs", {"name": "pay", "retryCount": 2}).status_code == 200

    assert api.get("/metadata/taskdefs/pay").json()["retryCount"] == 2


def test_a_list_overwrites_what_exists(api):
    api.post("/metadata/taskdefs", [{"name": "pay", "retryCount": 1}])

    api.post("/metadata/taskdefs", [{"name": "pay", "retryCount": 2}, {"name": "ship"}])

    assert [(shown["name"], shown["retryCount"]) for shown in api.get("/metadata/taskdefs").json()] == [
        ("pay", 2),
        ("ship", 3),
    ]


def test_one_invalid_definition_rejects_the_list(api):
    reply = api.post("/metadata/taskdefs", [{"name": "pay"}, {"retryCount": -1}, {"name": "x", "timeoutSeconds": 60}])

    assert reply.status_code == 400
    assert [error["path"] for error in reply.json()["validationErrors"]] == [
        "registerTaskDef.taskDefinitions[1].name",
        "registerTaskDef.taskDefinitions[1].retryCount",
        "registerTaskDef.taskDefinitions[2]",
    ]
    assert api.get("/metadata/taskdefs").json() == []


def test_an_empty_list_is_refused(api):
    reply = api.post("/metadata/taskdefs", [])

    [error] = reply.json()["validationErrors"]
    assert (reply.status_code, error["path"]) == (400, "registerTaskDef.taskDefinitions")


def test_a_definition_is_deleted(api):
    api.post("/metadata/taskdefs", [{"name": "pay"}])

    assert api.delete("/metadata/taskdefs/pay", {}).status_code == 200
    assert api.get("/metadata/taskdefs/pay").status_code == 404
    assert api.delete("/metadata/taskdefs/pay").status_code == 404


@pytest.mark.parametrize("never", [9007199254740991, 2**63 - 1])
def test_durations_that_mean_never_are_accepted_and_count_as_the_maximum(api, clock, never):
    longest = 10**12
    task = {"name": "pay", "timeoutSeconds": never, "responseTimeoutSeconds": never, "totalTimeoutSeconds": never}
    assert api.post("/metadata/taskdefs", [task]).status_code == 200
    api.define({"name": "pay", "taskReferenceName": "pay", "type": "SIMPLE"}, timeoutSeconds=never)
    run_id = api.start()
    [claimed] = api.poll("pay")

    assert api.report(claimed, "IN_PROGRESS", callbackAfterSeconds=never).status_code == 200

    kept = api.get("/metadata/taskdefs/pay").json()
    assert [kept[name] for name in task if name != "name"] == [longest] * 3
    assert api.get("/metadata/workflow/order").json()["timeoutSeconds"] == longest
    clock.advance(seconds=10**9)
    while sweeps.sweep_once():
        pass
    assert api.workflow(run_id)["status"] == "RUNNING"
    assert api.workflow(run_id)["tasks"][0]["callbackAfterSeconds"] == longest
