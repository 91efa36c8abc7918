"""Workflow definitions over the wire (api §1.5, §3.3)."""

import pytest

from conductor_app.definitions.models import WorkflowDefinition
from tests.builders import simple


def document(name="order", **fields):
    return {"name": name, "tasks": [simple("pay")], **fields}


def test_a_definition_is_returned_as_given_with_its_defaults(api, clock):
    reply = api.post("/metadata/workflow", document(colour="red", description=None))

    shown = api.get("/metadata/workflow/order").json()
    assert (reply.status_code, reply.content, reply["Content-Length"]) == (200, b"", "0")
    assert (shown["colour"], shown["version"], shown["schemaVersion"], shown["timeoutPolicy"]) == (
        "red",
        1,
        2,
        "ALERT_ONLY",
    )
    assert (shown["createTime"], shown["updateTime"], "description" in shown) == (clock.now(), 0, False)


def test_a_definition_is_overwritten_only_on_request(api, clock):
    api.post("/metadata/workflow", document())

    assert api.post("/metadata/workflow", document(description="new")).status_code == 409
    assert api.post("/metadata/workflow?overwrite=True", document(description="new")).status_code == 200
    shown = api.get("/metadata/workflow/order").json()
    assert (shown["description"], shown["updateTime"]) == ("new", clock.now())


def test_several_definitions_are_saved_in_one_request(api):
    api.post("/metadata/workflow", document())

    reply = api.put("/metadata/workflow?overwrite=True", [document(), document("ship")])

    assert reply.json() == {"bulkErrorResults": {}, "bulkSuccessfulResults": ["order", "ship"]}


def test_one_invalid_definition_rejects_the_list(api):
    reply = api.put("/metadata/workflow", [document(), document(name="", tasks=[{}])])

    assert reply.status_code == 400
    assert {error["path"] for error in reply.json()["validationErrors"]} == {
        "updateWorkflowDef.workflowDefList[1].name",
        "updateWorkflowDef.workflowDefList[1].tasks[0].name",
        "updateWorkflowDef.workflowDefList[1].tasks[0].taskReferenceName",
    }
    assert api.get("/metadata/workflow").json() == []


def test_validation_errors_contain_their_paths(api):
    reply = api.post("/metadata/workflow", {"schemaVersion": 1, "tasks": [{"name": "", "taskReferenceName": "a"}]})

    assert reply.json() == {
        "status": 400,
        "message": "Validation failed, check below errors for detail.",
        "retryable": False,
        "validationErrors": [
            {"path": "registerWorkflowDef.workflowDef.name", "message": "WorkflowDef name cannot be null or empty"},
            {
                "path": "registerWorkflowDef.workflowDef.schemaVersion",
                "message": "workflowDef schemaVersion: 2 is only supported",
                "invalidValue": "1",
            },
            {
                "path": "registerWorkflowDef.workflowDef.tasks[0].name",
                "message": "WorkflowTask name cannot be empty or null",
            },
        ],
    }


def test_a_definition_can_be_validated_without_saving(api):
    assert api.post("/metadata/workflow/validate", document()).status_code == 200
    assert api.post("/metadata/workflow/validate", {"name": "order"}).status_code == 400
    assert api.get("/metadata/workflow/names").json() == []


@pytest.fixture
def versions(api):
    """Register two versions of one definition and one of another, in random order."""
    for name, version in (("ship", 1), ("order", 2), ("order", 1)):
        api.post("/metadata/workflow", document(name, version=version))


def test_the_newest_version_is_shown_by_default(api, versions):
    assert api.get("/metadata/workflow/order").json()["version"] == 2
    assert api.get("/metadata/workflow/order", version=1).json()["version"] == 1
    assert api.get("/metadata/workflow/order", version=3).status_code == 404
    assert api.get("/metadata/workflow/nobody").status_code == 404


def test_definitions_are_listed_by_name_and_version(api, versions, clock):
    pairs = [(shown["name"], shown["version"]) for shown in api.get("/metadata/workflow").json()]
    newest = [(shown["name"], shown["version"]) for shown in api.get("/metadata/workflow/latest-versions").json()]

    assert pairs == [("order", 1), ("order", 2), ("ship", 1)]
    assert newest == [("order", 2), ("ship", 1)]
    assert api.get("/metadata/workflow/names").json() == ["order", "ship"]


def test_versions_are_summed_up(api, versions):
    by_name = api.get("/metadata/workflow/names-and-versions").json()

    assert {name: [each["version"] for each in found] for name, found in by_name.items()} == {
        "order": [1, 2],
        "ship": [1],
    }
    assert api.get("/metadata/workflow/order/versions").json() == by_name["order"]
    assert by_name["ship"][0].keys() == {"name", "version", "createTime"}


def test_one_version_is_deleted(api, versions):
    reply = api.delete("/metadata/workflow/order/2", {})

    assert (reply.status_code, reply.content) == (200, b"")
    assert api.get("/metadata/workflow/order").json()["version"] == 1
    assert api.delete("/metadata/workflow/order/2").status_code == 404
    assert api.delete("/metadata/workflow/order/two").status_code == 400


def test_definitions_are_listed_by_tag(api):
    api.post("/metadata/workflow", document("plain"))
    api.post("/metadata/workflow", document("robot", metadata={"agentDef": {}}))
    api.post("/metadata/workflow", document("special", metadata={"classifier": "Batch"}))

    def listed(classifier):
        return [shown["name"] for shown in api.get("/metadata/workflow", classifier=classifier).json()]

    assert (listed("workflow"), listed("AGENT"), listed("batch")) == (["plain"], ["robot"], ["special"])


UNJOINED = {"name": "f", "taskReferenceName": "f", "type": "FORK_JOIN", "forkTasks": [[simple("a")], [simple("b")]]}


def test_validate_lists_warnings(api):
    reply = api.post("/metadata/workflow/validate", {"name": "order", "ownerEmail": "a@b.c", "tasks": [UNJOINED]})

    [finding] = reply.json()["findings"]
    assert (reply.status_code, finding["severity"], finding["path"]) == (200, "warning", "tasks[0]")
    assert "No JOIN follows `f`" in finding["message"]


def test_validate_returns_an_empty_body_without_warnings(api):
    reply = api.post("/metadata/workflow/validate", {"name": "order", "ownerEmail": "a@b.c", "tasks": [simple("a")]})

    assert (reply.status_code, reply.content, "Content-Type" in reply.headers) == (200, b"", False)


def test_findings_of_an_inline_definition_contain_their_path(api):
    inline = {"name": "child", "tasks": [UNJOINED]}
    step = {"type": "SUB_WORKFLOW", "name": "s", "taskReferenceName": "s", "subWorkflowParam": {"name": "child"}}
    step["subWorkflowParam"]["workflowDefinition"] = inline

    reply = api.post("/metadata/workflow/validate", {"name": "order", "ownerEmail": "a@b.c", "tasks": [step]})

    [finding] = reply.json()["findings"]
    assert finding["path"] == "tasks[0].subWorkflowParam.workflowDefinition.tasks[0]"


def test_a_fork_that_no_join_follows_is_registered_and_fails_its_runs(api):
    api.define(UNJOINED)

    workflow = api.workflow(api.start())

    assert (workflow["status"], workflow["tasks"]) == ("FAILED", [])
    assert workflow["reasonForIncompletion"] == (
        "Fork task definition is not followed by a join task.  Check the blueprint"
    )


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_is_removed_from_addresses_is_refused_unless_it_exists(api, name):
    written = document(name, version=1)

    refused = api.put("/metadata/workflow", [written])
    WorkflowDefinition.objects.create(name=name, version=1, document=written, created_at=0, revision=1)
    overwritten = api.put("/metadata/workflow", [written])

    assert (refused.status_code, overwritten.status_code) == (400, 200)
    assert "cannot be part of an address" in refused.json()["validationErrors"][0]["message"]
    assert api.post("/metadata/taskdefs", [{"name": name}]).status_code == 400
