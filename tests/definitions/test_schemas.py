"""Schemas: stored by name and version, and used to validate payloads (api §2.1, execution §10.2)."""

from typing import Any

import pytest

from conductor_app.runs.models import Run
from tests.builders import simple, step_of

ORDER = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "lines": {"type": "array", "items": {"type": "string"}}},
}
NAMED = {"name": "order", "version": 1}


def order_schema(name: str = "order", **fields: Any) -> dict[str, Any]:
    return {"name": name, "version": 1, "type": "JSON", "data": ORDER, **fields}


def task(name: str = "pay", **fields: Any) -> dict[str, Any]:
    return {"name": name, "retryCount": 3, "retryDelaySeconds": 0, "enforceSchema": True, **fields}


def versions(api, name: str = "order") -> list[int]:
    return [each["version"] for each in api.get("/schema").json() if each["name"] == name]


def test_a_schema_is_saved_shown_overwritten_and_deleted(api):
    assert api.post("/schema", order_schema()).content == b""
    api.post("/schema", [order_schema(version=2), order_schema("other")])

    shown = api.get("/schema/order/1").json()
    assert (shown["name"], shown["version"], shown["type"], shown["data"]) == ("order", 1, "JSON", ORDER)
    assert shown["createTime"] > 0
    assert api.get("/schema/order").json()["version"] == 2
    assert versions(api) == [1, 2]

    api.post("/schema", order_schema(data={"type": "object"}))
    assert api.get("/schema/order/1").json()["data"] == {"type": "object"}
    api.post("/schema?newVersion=true", order_schema())
    assert versions(api) == [1, 2, 3]

    assert api.delete("/schema/order/2").status_code == 200
    assert versions(api) == [1, 3]
    assert api.delete("/schema/order").status_code == 200
    assert versions(api) == []
    assert versions(api, "other") == [1]


def test_a_short_list_leaves_out_the_data(api):
    api.post("/schema", order_schema())

    [short] = api.get("/schema", short="true").json()
    [long] = api.get("/schema", short="false").json()

    assert short == {name: value for name, value in long.items() if name != "data"}
    assert long["data"] == ORDER


@pytest.mark.parametrize("path", ["/schema/nix", "/schema/order/7"])
def test_an_unknown_schema_is_not_found(api, path):
    api.post("/schema", order_schema())

    assert api.get(path).status_code == 404
    assert api.delete(path).status_code == 404


FAULTY = [
    ({"name": ""}, "name"),
    ({"name": "x" * 256}, "name"),
    ({"type": None}, "type"),
    ({"type": "XML"}, "type"),
    ({"version": 0}, "version"),
]


@pytest.mark.parametrize(("fields", "path"), FAULTY)
def test_an_invalid_schema_is_rejected_with_its_path_and_not_saved(api, fields, path):
    reply = api.post("/schema", [order_schema("fine"), order_schema(**fields)])

    assert reply.status_code == 400
    places = [each["path"] for each in reply.json()["validationErrors"]]
    assert f"saveSchema.schemas[1].{path}" in places
    assert api.get("/schema").json() == []


@pytest.mark.parametrize("body", [[], 7, "x", [7], None])
def test_an_invalid_json_body_is_rejected(api, body):
    assert api.post("/schema", body).status_code == 400


UNUSABLE = {
    "an unknown type": {"type": "nix"},
    "a pattern that is none": {"pattern": "("},
    "a word where a schema belongs": {"properties": {"$schema": "http://json-schema.org/draft-07/schema"}},
    "another address": {"$ref": "http://localhost/other"},
    "a file": {"$ref": "file:///etc/hostname"},
}


@pytest.mark.parametrize("data", UNUSABLE.values(), ids=UNUSABLE)
def test_a_schema_of_another_type_is_registered_like_in_the_original(api, data):
    assert api.post("/schema", order_schema(data=data)).status_code == 200
    assert api.get("/schema").json()[0]["data"] == data
    definition = {"name": "w", "tasks": [simple("a")], "inputSchema": order_schema(data=data), "enforceSchema": True}
    assert api.post("/metadata/workflow", definition).status_code == 200
    assert (
        api.post("/metadata/taskdefs", [task(outputSchema=order_schema(data=data), enforceSchema=True)]).status_code
        == 200
    )


@pytest.mark.parametrize("data", UNUSABLE.values(), ids=UNUSABLE)
def test_validate_lists_schemas_that_cannot_be_used_with_their_places(api, data):
    own = {"name": "a", "inputSchema": order_schema(data=data)}
    definition = {"name": "w", "tasks": [simple("a", taskDefinition=own)], "outputSchema": order_schema(data=data)}

    reply = api.post("/metadata/workflow/validate", definition)

    assert reply.status_code == 200
    found = {each["path"]: each for each in reply.json()["findings"]}
    assert found.keys() == {"outputSchema.data", "tasks[0].taskDefinition.inputSchema.data"}
    assert {each["severity"] for each in found.values()} == {"warning"}
    assert all("Not a usable JSON schema" in each["message"] for each in found.values())


def test_a_start_with_an_unusable_enforced_schema_is_rejected(api):
    api.define(simple("a"), inputSchema=order_schema(data={"$ref": "http://localhost/other"}))

    reply = api.post("/workflow", {"name": "order"})

    assert reply.status_code == 400
    assert "the schema cannot be used: " in reply.json()["validationErrors"][0]["message"]


def test_a_task_with_an_unusable_schema_fails_with_the_reason(api):
    own = {"name": "a", "inputSchema": order_schema(data={"type": "nix"}), "enforceSchema": True}
    api.define(simple("a", taskDefinition=own))

    workflow = api.workflow(api.start())

    assert (workflow["status"], workflow["tasks"][0]["status"]) == ("FAILED", "FAILED_WITH_TERMINAL_ERROR")
    assert "the schema cannot be used: " in workflow["tasks"][0]["reasonForIncompletion"]


@pytest.mark.parametrize("schema", [order_schema(), NAMED, {"name": "order"}])
def test_a_start_with_an_input_that_does_not_fit_is_refused_with_every_complaint(api, schema):
    api.post("/schema", order_schema())
    api.define(simple("pay"), inputSchema=schema)

    reply = api.post("/workflow", {"name": "order", "input": {"lines": ["a", 7, "secret", None]}})

    assert reply.status_code == 400
    found = {each["path"]: each["message"] for each in reply.json()["validationErrors"]}
    assert found == {
        "input": '"id" is a required property',
        "input.lines[1]": 'the value is not of type "string"',
        "input.lines[3]": 'the value is not of type "string"',
    }
    assert not Run.objects.exists()
    assert api.workflow(api.start(input={"id": 1}))["status"] == "RUNNING"


UNHELD = [
    {"inputSchema": order_schema(), "enforceSchema": False},
    {"inputSchema": order_schema(type="AVRO")},
    {"inputSchema": {"name": "far", "type": "JSON", "externalRef": "http://localhost/far"}},
]


@pytest.mark.parametrize("fields", UNHELD)
def test_unenforced_and_foreign_schemas_have_no_effect(api, fields):
    api.define(simple("pay"), **fields)

    assert api.workflow(api.start(input={"lines": 7}))["status"] == "RUNNING"


def test_an_unregistered_enforced_schema_rejects_every_input(api):
    api.define(simple("pay"), inputSchema=NAMED)

    reply = api.post("/workflow", {"name": "order", "input": {"id": 1}})

    assert reply.status_code == 400
    assert "there is no schema order, version 1" in reply.json()["validationErrors"][0]["message"]
    api.post("/schema", order_schema())
    assert api.start(input={"id": 1})


def test_a_changed_schema_applies_to_the_next_start(api):
    api.post("/schema", order_schema())
    api.define(simple("pay"), inputSchema=NAMED)
    api.start(input={"id": 1})

    api.post("/schema", order_schema(data={"required": ["name"]}))

    assert api.post("/workflow", {"name": "order", "input": {"id": 1}}).status_code == 400


def test_a_report_with_an_output_that_does_not_fit_fails_the_task_for_good(api):
    api.post("/schema", order_schema())
    api.post("/metadata/taskdefs", [task(outputSchema=NAMED)])
    api.define(simple("pay"))
    run = api.start()
    [polled] = api.poll("pay")

    assert api.report(polled, outputData={"id": "seven", "lines": 7}).status_code == 200

    workflow = api.workflow(run)
    [failed] = workflow["tasks"]
    assert (workflow["status"], failed["status"]) == ("FAILED", "FAILED_WITH_TERMINAL_ERROR")
    assert 'output.id: the value is not of type "integer"' in failed["reasonForIncompletion"]
    assert 'output.lines: the value is not of type "array"' in failed["reasonForIncompletion"]
    assert failed["outputData"] == {"id": "seven", "lines": 7}


def test_a_valid_output_is_accepted_and_a_failed_report_is_not_validated(api):
    api.post("/metadata/taskdefs", [task(outputSchema=order_schema())])
    api.define(simple("pay"))
    run = api.start()

    [polled] = api.poll("pay")
    api.report(polled, "FAILED", outputData={})
    api.poll("pay")
    [polled] = api.poll("pay") or [api.workflow(run)["tasks"][-1]]
    api.report(polled, outputData={"id": 1})

    assert api.workflow(run)["status"] == "COMPLETED"


def test_a_task_with_an_invalid_input_fails_permanently_before_dispatch(api):
    api.post("/metadata/taskdefs", [task(inputSchema=order_schema())])
    api.define(simple("pay", inputParameters={"id": "${workflow.input.id}"}))

    run = api.start(input={"id": "seven"})

    workflow = api.workflow(run)
    [failed] = workflow["tasks"]
    assert (workflow["status"], failed["status"]) == ("FAILED", "FAILED_WITH_TERMINAL_ERROR")
    assert failed["inputData"] == {"id": "seven"}
    assert 'input.id: the value is not of type "integer"' in failed["reasonForIncompletion"]
    assert api.poll("pay") == []
    api.start(input={"id": 7})
    assert len(api.poll("pay")) == 1


def test_task_schemas_are_enforced_only_on_request(api):
    api.post("/metadata/taskdefs", [task(inputSchema=order_schema(), outputSchema=order_schema(), enforceSchema=None)])
    api.define(simple("pay"))
    run = api.start()

    api.report(api.poll("pay")[0], outputData={})

    assert api.workflow(run)["status"] == "COMPLETED"


def test_tasks_of_dynamic_branches_are_validated(api):
    api.post("/schema", order_schema())
    api.post("/metadata/taskdefs", [task(inputSchema=NAMED)])
    fork = step_of("FORK_JOIN_DYNAMIC", "fork", dynamicForkTasksParam="made", dynamicForkTasksInputParamName="inputs",
                inputParameters={"made": "${workflow.input.made}", "inputs": "${workflow.input.inputs}"})  # fmt: skip
    api.define(fork, step_of("JOIN", "join"))

    made = [simple("pay", taskReferenceName=ref) for ref in ("good", "bad")]
    run = api.start(input={"made": made, "inputs": {"good": {"id": 1}, "bad": {"id": "one"}}})

    statuses = {each["referenceTaskName"]: each["status"] for each in api.workflow(run)["tasks"]}
    assert statuses["bad"] == "FAILED_WITH_TERMINAL_ERROR"
    assert api.workflow(run)["status"] == "FAILED"


@pytest.mark.parametrize("kind", ["SUB_WORKFLOW", "START_WORKFLOW"])
def test_the_input_of_a_sub_workflow_is_validated(api, kind):
    api.define(simple("pay"), name="child", inputSchema=order_schema())
    fields = {
        "SUB_WORKFLOW": {"subWorkflowParam": {"name": "child"}, "inputParameters": {"id": "${workflow.input.id}"}},
        "START_WORKFLOW": {
            "inputParameters": {"startWorkflow": {"name": "child", "input": {"id": "${workflow.input.id}"}}}
        },
    }
    api.define(step_of(kind, "sub", **fields[kind]))

    run = api.start(input={"id": "seven"})

    workflow = api.workflow(run)
    assert workflow["status"] == "FAILED"
    assert 'input.id: the value is not of type "integer"' in workflow["tasks"][0]["reasonForIncompletion"]
    assert not Run.objects.filter(name="child").exists()
    api.start(input={"id": 7})
    assert Run.objects.filter(name="child").count() == 1


def test_a_workflow_with_an_invalid_output_fails(api):
    api.define(simple("pay"), outputSchema=order_schema(), outputParameters={"id": "${pay.output.id}"})
    good, bad = api.start(), api.start()
    for polled in api.poll("pay", count=2):
        api.report(polled, outputData={"id": 7 if polled["workflowInstanceId"] == good else "seven"})

    assert api.workflow(good)["status"] == "COMPLETED"
    assert api.workflow(bad)["status"] == "FAILED"
    assert 'output.id: the value is not of type "integer"' in api.workflow(bad)["reasonForIncompletion"]
    assert api.workflow(bad)["output"] == {"id": "seven"}


def test_system_tasks_are_validated(api):
    held = task("sum", outputSchema=order_schema())
    inline = {"evaluatorType": "graaljs", "expression": "({id: $.n})", "n": "x"}
    api.define(step_of("INLINE", "sum", inputParameters=inline, taskDefinition=held))

    [done] = api.workflow(api.start())["tasks"]

    # Its output is an object under `result`, with no id of its own.
    assert done["status"] == "FAILED_WITH_TERMINAL_ERROR"
    assert '"id" is a required property' in done["reasonForIncompletion"]


def test_a_catastrophic_pattern_ends_at_once(api):
    hostile = {"properties": {"x": {"pattern": "^(a+)+$"}}}
    api.define(simple("pay"), inputSchema=order_schema(data=hostile))

    assert api.post("/workflow", {"name": "order", "input": {"x": "a" * 5000 + "b"}}).status_code == 400


def test_a_workflow_test_is_validated(api):
    definition = {"name": "order", "version": 1, "tasks": [simple("pay")], "inputSchema": order_schema()}

    reply = api.post("/workflow/test", {"name": "order", "workflowDef": definition, "input": {"id": "x"}})

    assert reply.status_code == 400


@pytest.mark.parametrize("schema", [{"name": "a\0b"}, {"name": "x", "version": 10**30}, {"name": 7}, {"name": ["x"]}])
def test_a_schema_under_an_impossible_name_is_no_fault_of_ours(api, schema):
    sub = {"name": "child", "tasks": [simple("pay")], "inputSchema": schema}
    param = {"name": "child", "workflowDefinition": "${workflow.input.sub}"}
    api.define(step_of("SUB_WORKFLOW", "sub", subWorkflowParam=param))

    run = api.start(input={"sub": sub})

    assert api.workflow(run)["status"] == "FAILED"
    assert api.workflow(run)["tasks"][0]["status"] == "FAILED_WITH_TERMINAL_ERROR"
