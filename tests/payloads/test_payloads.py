"""Payloads that clients keep elsewhere, with the requests that the Java SDK sends (api §1.2)."""

from urllib.parse import urlsplit

import pytest

from conductor_app.payloads.models import StoredPayload
from tests.builders import simple

JAVA = {"Accept-Encoding": "gzip", "User-Agent": "okhttp/4.12.0"}


def location(api, room="tasks", operation="WRITE", kind="TASK_OUTPUT", path="", name="externalstoragelocation"):
    asked = {"path": path, "operation": operation, "payloadType": kind}
    return api.client.get(f"/api/{room}/{name}", asked)


def upload(api, content: bytes, **asked) -> str:
    """Upload a payload; its path."""
    found = location(api, **asked).json()
    reply = put(api, found["uri"], content)
    assert reply.status_code == 200, reply.content
    return found["path"]


def put(api, uri: str, content: bytes):
    return api.send("PUT", address(uri), content, **JAVA)


def get(api, uri: str):
    return api.client.get(f"/api{address(uri)}")


def address(uri: str) -> str:
    parts = urlsplit(uri)
    assert parts.scheme == "http" and parts.path.startswith("/api/")
    return f"{parts.path.removeprefix('/api')}?{parts.query}"


@pytest.fixture
def order(api, clock) -> None:
    api.define(simple("pay"), outputParameters={"total": "${pay.output.total}", "size": "${workflow.input.size}"})


@pytest.mark.parametrize("name", ["externalstoragelocation", "external-storage-location"])
@pytest.mark.parametrize("room", ["workflow", "tasks"])
def test_a_payload_is_uploaded_and_fetched_at_signed_urls(api, clock, room, name):
    written = location(api, room, "write", "workflow_input", name=name).json()
    assert put(api, written["uri"], b'{"n": 1}').content == b""

    read = location(api, room, "READ", "WORKFLOW_INPUT", written["path"], name).json()
    reply = get(api, read["uri"])

    assert read["path"] == written["path"]
    assert (b"".join(reply.streaming_content), reply["Content-Length"]) == (b'{"n": 1}', "8")
    assert reply["Content-Type"] == "application/json"


def test_a_workflow_starts_with_an_input_that_was_uploaded(api, order):
    path = upload(api, b'{"size": 2}', room="workflow", kind="WORKFLOW_INPUT")

    workflow_id = api.start(input=None, externalInputPayloadStoragePath=path)

    shown = api.workflow(workflow_id)
    assert (shown["input"], shown["externalInputPayloadStoragePath"]) == ({}, path)


def test_a_worker_reports_an_output_that_it_has_uploaded(api, order):
    workflow_id = api.start(externalInputPayloadStoragePath=upload(api, b'{"size": 2}'))
    [task] = api.poll("pay")
    path = upload(api, b'{"total": 7}')

    reply = api.report(task, outputData=None, externalOutputPayloadStoragePath=path)

    assert reply.status_code == 200
    shown = api.workflow(workflow_id)
    assert (shown["tasks"][0]["outputData"], shown["tasks"][0]["externalOutputPayloadStoragePath"]) == ({}, path)
    assert (shown["status"], shown["output"]) == ("COMPLETED", {"total": 7, "size": 2})


def test_a_worker_of_any_language_gets_a_large_input(api, clock, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = 100
    api.define(simple("pay", inputParameters={"text": "${workflow.input.text}"}))
    workflow_id = api.start(input={"text": "x" * 500})

    [task] = api.poll("pay")

    # Workers in Java fetch it by its path, others take it as it is.
    assert task["inputData"] == {"text": "x" * 500}
    path = task["externalInputPayloadStoragePath"]
    fetched = get(api, location(api, operation="READ", kind="TASK_INPUT", path=path).json()["uri"])
    assert fetched.status_code == 200
    assert api.workflow(workflow_id)["tasks"][0]["inputData"] == {}


FAULTY = {
    "operation": {"path": "", "operation": "LOOK", "payloadType": "TASK_INPUT"},
    "kind": {"path": "", "operation": "READ", "payloadType": "ANYTHING"},
    "no path": {"operation": "READ", "payloadType": "TASK_INPUT"},
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_location_that_cannot_be_understood_is_refused(api, clock, case):
    assert api.client.get("/api/tasks/externalstoragelocation", FAULTY[case]).status_code == 400


def test_without_a_storage_there_is_no_address(api, clock, settings):
    settings.CONDUCTOR_PAYLOAD_STORAGE = ""

    assert location(api, path="some/where").json() == {"path": "some/where"}


def test_an_address_is_for_one_payload_one_purpose_and_a_while(api, clock):
    path = upload(api, b"{}")
    read = location(api, operation="READ", path=path).json()["uri"]
    other = location(api).json()["uri"]

    assert put(api, read, b"{}").status_code == 403
    assert put(api, read.replace("READ", "WRITE"), b"{}").status_code == 403
    assert get(api, read.replace(path, "task/output/other.json")).status_code == 403
    assert get(api, other).status_code == 403
    assert get(api, read.split("?")[0]).status_code == 403
    clock.advance(seconds=16 * 60)
    assert get(api, read).status_code == 403


def test_an_upload_is_not_larger_than_a_payload_may_be(api, clock, settings):
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = 100

    reply = put(api, location(api).json()["uri"], b"x" * 101)

    assert reply.status_code == 413
    assert StoredPayload.objects.get().size is None


def test_an_upload_can_be_repeated_until_it_is_used(api, order):
    written = location(api).json()
    put(api, written["uri"], b'{"size": 1}')
    again = put(api, written["uri"], b'{"size": 2}')
    workflow_id = api.start(externalInputPayloadStoragePath=written["path"])
    late = put(api, written["uri"], b'{"size": 3}')

    [task] = api.poll("pay")
    api.report(task)
    assert (again.status_code, late.status_code) == (200, 409)
    assert api.workflow(workflow_id)["output"]["size"] == 2


NAMED = {
    "nowhere": None,
    "not uploaded": b"",
    "no JSON": b"{",
    "a list": b"[1]",
    "no text": b"\xff\xfe",
    "no number": b'{"n": 1e999}',
    "deep": b'{"n": ' + b"[" * 300 + b"]" * 300 + b"}",
    "too deep for any reader": b'{"n": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "sealed by somebody": b'{"card": "sealed-by-conductor:abc"}',
}


@pytest.mark.parametrize("case", NAMED)
def test_an_unreadable_payload_starts_nothing(api, order, case):
    content = NAMED[case]
    path = "task/input/nowhere.json" if content is None else location(api).json()["path"]
    if content:
        path = upload(api, content)

    reply = api.post("/workflow", {"name": "order", "externalInputPayloadStoragePath": path})

    assert reply.status_code == 400
