"""For any input, the reply has the documented shape and is never a server error."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import simple
from tests.hypothesis_profile import property_settings

pytestmark = pytest.mark.slow

ADDRESSES = [
    ("POST", "/tasks"),
    ("POST", "/tasks/update-v2"),
    ("POST", "/tasks/w/r/COMPLETED"),
    ("POST", "/workflow"),
    ("POST", "/workflow/order"),
    ("POST", "/workflow/order/correlated"),
    ("POST", "/metadata/workflow"),
    ("PUT", "/metadata/workflow"),
    ("POST", "/metadata/workflow/validate"),
    ("POST", "/metadata/taskdefs"),
    ("PUT", "/metadata/taskdefs"),
    ("POST", "/event"),
    ("PUT", "/event"),
    ("POST", "/event/handleIncomingEvent"),
    ("POST", "/schema"),
    ("POST", "/metadata/webhook"),
    ("PUT", "/metadata/webhook/x"),
    ("POST", "/webhook/x"),
    ("POST", "/token"),
]
BODIES = {
    "nothing": b"",
    "a broken object": b'{"a":',
    "two values": b"{} {}",
    "not a number": b'{"name": NaN}',
    "infinity": b'{"name": 1e999, "tasks": [-Infinity]}',
    "half a pair": b'"\\ud800"',
    "no UTF-8": b'{"name": "\xff\xfe"}',
    "a mark of byte order": b"\xef\xbb\xbf{}",
    "ten thousand lists": b"[" * 10_000 + b"]" * 10_000,
    "nine hundred objects": b'{"a":' * 900 + b"1" + b"}" * 900,
    "a long number beside half a pair": b'[12345678901234567890123, "\\ud800"]',
    "a number": b"1",
    "a text": b'"x"',
    "a list of nulls": b"[null, null]",
    "a number that fills memory": b"9" * 5000,
}


def check(reply):
    """Assert that the reply is no server error, and that an error has the documented shape."""
    assert reply.status_code < 500, reply.content
    if reply.status_code >= 400:
        error = reply.json()
        assert error["status"] == reply.status_code
        assert isinstance(error["message"], str)


@pytest.mark.parametrize("body", BODIES)
def test_no_body_whatsoever_is_a_fault_of_ours(api, body):
    for method, address in ADDRESSES:
        reply = api.send(method, address, BODIES[body])

        check(reply)
        assert reply.status_code >= 400 or (address.endswith("COMPLETED") and reply.content == b""), address


@pytest.mark.parametrize(
    ("sent", "kept"),
    {
        '"cut \\ud83d"': "cut \ufffd",
        '"\\uDE00\\ud83d\\ude00 \\ud83d\\ud83d\\ude00"': "\ufffd\U0001f600 \ufffd\U0001f600",
        '"\\\\ud800 \\\\\\ud800 12345678901234567890123"': "\\ud800 \\\ufffd 12345678901234567890123",
    }.items(),
)
def test_a_report_with_text_truncated_within_a_character_is_accepted(api, sent, kept):
    api.define(simple("pay"))
    api.start()
    [task] = api.poll("pay")
    names = {"taskId": task["taskId"], "workflowInstanceId": task["workflowInstanceId"], "status": "COMPLETED"}

    reply = api.post("/tasks", (json.dumps(names)[:-1] + ', "outputData": {"said": ' + sent + "}}").encode())

    assert (reply.status_code, api.get(f"/tasks/{task['taskId']}").json()["outputData"]) == (200, {"said": kept})


def test_ten_megabytes_are_answered(api):
    for method, address in ADDRESSES:
        check(api.send(method, address, b'{"name": "' + b"x" * 10_000_000 + b'"}'))


def test_ten_thousand_empty_documents_are_answered(api):
    for method, address in ADDRESSES:
        check(api.send(method, address, b"[" + b"{}," * 10_000 + b"{}]"))


def test_a_body_beyond_the_limit_is_refused(api, settings):
    settings.CONDUCTOR_MAX_REQUEST_BYTES = 1000

    reply = api.post("/tasks", b"x" * 1001)

    assert (reply.status_code, reply.json()["status"]) == (413, 413)


NAMES = st.sampled_from(
    ["name", "tasks", "version", "input", "workflowInstanceId", "taskId", "status", "outputData", "logs", "type",
     "callbackAfterSeconds", "taskReferenceName", "inputParameters", "priority", "taskToDomain", "workflowDef",
     "idempotencyKey", "correlationId", "retryCount", "timeoutSeconds", "keyId", "keySecret"]
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(["", "order", "COMPLETED", "\0", "pay", "FAIL", "${a}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)


@property_settings(80)
@given(where=st.sampled_from(ADDRESSES), value=VALUES | st.dictionaries(NAMES, VALUES, max_size=8))
def test_no_json_whatsoever_is_a_fault_of_ours(api, where, value):
    check(api.send(*where, json.dumps(value).encode()))


TEXTS = ["", "\0", "a\0b", "x" * 5000, "é\U0001f600", "%2F", "' OR 1=1 --", "99999999999999999999", "-1", "None"]
GETS = [
    "/tasks/{}", "/tasks/{}/log", "/tasks/poll/{}", "/tasks/poll/batch/{}?timeout=0", "/workflow/{}",
    "/workflow/{}/status", "/workflow/{}/tasks", "/workflow/{}/correlated/{}", "/workflow/running/{}",
    "/metadata/workflow/{}", "/metadata/workflow/{}/versions", "/metadata/taskdefs/{}",
    "/tasks/poll/batch/pay?timeout=0&workerid={}&domain={}", "/workflow/x/tasks?start={}&count={}",
    "/metadata/workflow/x?version={}", "/workflow/running/x?startTime={}&endTime={}", "/tasks/queue/size?taskType={}",
    "/workflow/search?query={}", "/workflow/search?start={}&size={}&freeText={}&sort={}&queryId={}",
    "/workflow/search?query=input.a%3D{}", "/workflow/search?query=startTime%3E{}%20AND%20version%3D{}",
    "/workflow/search?classifier={}&topLevelOnly={}", "/workflow/search-by-tasks?query={}", "/tasks/search?query={}",
    "/tasks/search-v2?query=input.a%3D{}", "/tasks/search?freeText={}&sort={}",
    "/tasks/queue/sizes?taskType={}", "/tasks/queue/polldata?taskType={}", "/metadata/workflow?classifier={}",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_address_whatsoever_is_a_fault_of_ours(api, text):
    for address in GETS:
        check(api.get(address.replace("{}", quote(text))))


WRITES = [
    ("POST", "/tasks/{}/{}/COMPLETED"), ("POST", "/tasks/{}/log"), ("DELETE", "/workflow/{}?reason={}"),
    ("PUT", "/workflow/{}/pause"), ("PUT", "/workflow/{}/resume"), ("POST", "/workflow/{}/retry"),
    ("DELETE", "/workflow/{}/remove"), ("PUT", "/workflow/decide/{}"), ("POST", "/workflow/{}"),
    ("DELETE", "/schema/{}"), ("DELETE", "/schema/{}/1"), ("DELETE", "/schema/x/{}"),
    ("DELETE", "/metadata/workflow/{}/1"), ("DELETE", "/metadata/workflow/x/{}"), ("DELETE", "/metadata/taskdefs/{}"),
    ("POST", "/workflow/x?priority={}&version={}&correlationId={}"),
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_address_of_a_change_is_a_fault_of_ours(api, text):
    for method, address in WRITES:
        check(api.send(method, address.replace("{}", quote(text)), {}))


def test_characters_that_a_database_cannot_store_are_removed(api, clock):
    api.define(simple("pay"))

    workflow_id = api.start(correlationId="a\0b", input={"x": "a\0b"})
    [task] = api.poll("pay", workerid="w\0x")
    api.report(task, "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion="no\0 funds", outputData={"y\0": "\0"})

    workflow = api.workflow(workflow_id)
    assert (workflow["correlationId"], workflow["input"]) == ("ab", {"x": "a\0b"})
    assert workflow["tasks"][0]["reasonForIncompletion"] == "no funds"
    assert workflow["tasks"][0]["outputData"] == {"y\0": "\0"}


def test_values_are_read_as_clients_mean_them(api):
    api.post("/metadata/taskdefs", [{"name": 7, "retryCount": "2", "retryDelaySeconds": 1.9, "enforceSchema": "True"}])

    shown = api.get("/metadata/taskdefs/7").json()

    assert (shown["name"], shown["retryCount"], shown["retryDelaySeconds"], shown["enforceSchema"]) == ("7", 2, 1, True)
