"""Findings in the replies that save documents or start workflows: fields that nothing reads, and the rest of lint."""

import json

import pytest
from django.http import HttpResponse

from conductor_app.core.validation.findings import LintFinding
from conductor_app.web.api.operations import add_findings
from tests.builders import simple

HANDLER = {
    "name": "h",
    "event": "conductor:a:b",
    "actions": [{"action": "complete_task", "complete_task": {"workflowId": "w", "taskRefName": "t", "taskRef": "t"}}],
}
SCHEDULE = {"name": "s", "cronExpression": "0 0 0 * * ?", "startWorkflowRequest": {"name": "order", "inputs": {}}}
WEBHOOK = {"name": "w", "verifier": "HEADER_BASED", "headers": {"key": "4711"}, "recieverWorkflow": "order"}


def finding_paths(reply):
    """Return the paths in the header of a reply."""
    assert reply.status_code == 200, reply.content
    reply = (
        json.loads(reply.headers["Conductor-Findings"]) if "Conductor-Findings" in reply.headers else {"findings": []}
    )
    return [each["path"] for each in reply["findings"]]


@pytest.fixture
def order(api):
    return api.define(simple("pay"))


def test_a_saved_definition_has_its_findings_in_the_header_and_the_reply_of_a_list(api):
    document = {"name": "order", "tasks": [{**simple("pay"), "optonal": True}]}

    created = api.post("/metadata/workflow", document)
    saved = api.put("/metadata/workflow", [document])

    assert (created.content, finding_paths(created)) == (b"", ["tasks[0].optonal"])
    assert finding_paths(saved) == ["[0].tasks[0].optonal"]
    [finding] = saved.json()["findings"]
    assert (finding["severity"], finding["path"]) == ("warning", "[0].tasks[0].optonal")


def test_a_definition_without_findings_has_the_replies_of_the_original(api):
    document = {"name": "order", "tasks": [simple("pay")]}

    assert "Conductor-Findings" not in api.post("/metadata/workflow", document).headers
    assert api.put("/metadata/workflow", [document]).json() == {
        "bulkErrorResults": {},
        "bulkSuccessfulResults": ["order"],
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "paths"),
    [
        ("post", "/metadata/taskdefs", [{"name": "t", "retries": 3}], ["[0].retries"]),
        ("put", "/metadata/taskdefs", {"name": "t", "timeout": 3}, ["timeout"]),
        ("post", "/event", HANDLER, ["actions[0].complete_task.taskRef"]),
        ("post", "/metadata/webhook", WEBHOOK, ["recieverWorkflow"]),
        ("post", "/scheduler/schedules", SCHEDULE, ["startWorkflowRequest.inputs"]),
        ("post", "/workflow", {"name": "order", "inputs": {}, "correlationID": "c"}, ["inputs", "correlationID"]),
        ("post", "/workflow/start/order/1", {"inputs": {}}, ["inputs"]),
    ],
)
def test_a_field_that_nothing_reads_is_in_the_header_of_the_reply(api, order, method, path, body, paths):
    assert finding_paths(getattr(api, method)(path, body)) == paths


def test_what_a_reply_contains_can_be_sent_back_without_findings(api, order):
    webhook = api.post("/metadata/webhook", {**WEBHOOK, "recieverWorkflow": None}).json()
    schedule = api.post("/scheduler/schedules", {**SCHEDULE, "startWorkflowRequest": {"name": "order"}}).json()

    assert finding_paths(api.put(f"/metadata/webhook/{webhook['id']}", webhook)) == []
    assert finding_paths(api.post("/scheduler/schedules", schedule)) == []
    assert finding_paths(api.put("/metadata/workflow", [api.get("/metadata/workflow/order").json()])) == []


def test_the_header_is_ascii_and_has_as_many_findings_as_there_is_room_for(api):
    steps = [{**simple(f"ü{number}"), "ünknown": 1} for number in range(100)]

    reply = api.post("/metadata/workflow", {"name": "order", "tasks": steps})

    header = reply.headers["Conductor-Findings"]
    assert (header.isascii(), len(header) <= 2_000, json.loads(header)["count"]) == (True, True, 100)


@pytest.mark.parametrize("character", ["a", "ü", "😀", "\x01", '"'])
def test_the_header_stays_below_its_limit_with_any_characters(character):
    finding = LintFinding("warning", "unknown-field", character * 5_000, character * 5_000)

    header = add_findings(HttpResponse(), [finding, finding])["Conductor-Findings"]

    assert (header.isascii(), len(header) <= 2_000, json.loads(header)["count"]) == (True, True, 2)
