"""Conventions of every method: error format, order of checks, hostile input (taskcluster §1.1)."""

import gzip
import json

import pytest
from django.test import RequestFactory

from conductor_app.taskcluster import urls
from conductor_app.taskcluster.api import schemas
from conductor_app.taskcluster.api.tasks import ClaimWork
from conductor_app.taskcluster.api.view import TaskclusterView

from .conftest import HOUR, JSON, LINUX, refusal_code

NONE = "V3Wzk-6rT9yQ1uY2o0nJ5A"
MALFORMED, SCHEMA, INPUT = (400, "MalformedPayload"), (400, "InputValidationError"), (400, "InputError")
ARGUMENTS = (400, "InvalidRequestArguments")


def test_a_rejection_repeats_the_request(queue):
    path = f"/claim-work/{LINUX}"

    reply = queue.post(path, {"workerGroup": "here", "colour": "crimson"})

    body = reply.json()
    assert sorted(body) == ["code", "message", "requestInfo"]
    assert body["requestInfo"] == {
        "method": "claimWork",
        "params": {"taskQueueId": LINUX},
        "payload": {"workerGroup": "here", "colour": "crimson"},
        "time": queue.at(0),
    }
    text, _, bullets = body["message"].partition("\n\n---\n\n")
    assert "workerId" in text
    assert "errorCode:  InputValidationError" in bullets
    assert "crimson" not in text


def test_responses_are_not_cached_and_have_an_id(queue):
    reply = queue.client.get("/api/queue/v1/ping", headers={"x-taskcluster-trace-id": "abc123"})

    assert reply.json()["alive"] is True
    assert reply["Cache-Control"] == "no-store no-cache must-revalidate"
    assert (reply["x-for-trace-id"], len(reply["x-for-request-id"])) == ("abc123", 32)


def test_no_cache_may_store_an_access_token_or_the_credentials_of_a_claim(queue):
    client = {"expires": queue.at(HOUR), "description": "", "scopes": []}
    replies = [
        queue.claim_specific_task(queue.create()),
        queue.client.put("/api/auth/v1/clients/fleet", client, content_type="application/json"),
        # The first client ends open access.
        queue.client.get("/api/auth/v1/clients/fleet"),
    ]

    assert [reply.status_code for reply in replies] == [200, 200, 403]
    assert all("accessToken" in reply.content.decode() for reply in replies[:2])
    assert {"no-store" in reply["Cache-Control"] for reply in replies} == {True}


@pytest.mark.parametrize("trace", ["fN1SbArXTPSVFNUvaOlinQ-_", "0f8fad5b-d9cb-469f-a165-70867728950e", "x" * 128])
def test_the_trace_id_of_a_caller_is_returned_with_every_response(queue, trace):
    for path in ("/ping", f"/task/{NONE}", "/nothing"):
        reply = queue.client.get(f"/api/queue/v1{path}", headers={"x-taskcluster-trace-id": trace})

        assert reply["x-for-trace-id"] == trace


@pytest.mark.parametrize("trace", ["", "x" * 129, "a b", "ü", "a\r\nset-cookie: b=c"])
def test_an_unusable_trace_id_is_replaced(queue, trace):
    reply = queue.client.get("/api/queue/v1/ping", headers={"x-taskcluster-trace-id": trace})

    assert len(reply["x-for-trace-id"]) == 32
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("path", ["/nothing", f"/task/{NONE}/nothing", "/Ping", "/task/"])
def test_an_unknown_path_is_a_clear_not_found(queue, path):
    reply = queue.get(path)

    assert (reply.status_code, reply.json()) == (404, {"error": "Not found"})


def test_a_verb_that_an_address_has_not_is_no_address(queue):
    assert queue.send("DELETE", f"/task/{NONE}").json() == {"error": "Not found"}


BODIES = {
    "no JSON": (b"{", MALFORMED),
    "nothing": (b"", MALFORMED),
    "no UTF-8": (b'"\xff"', MALFORMED),
    "a list": ([], SCHEMA),
    "a number": (1, SCHEMA),
    "null": (b"null", SCHEMA),
    "NUL": (b'{"workerGroup": "a", "workerId": "\\u0000"}', INPUT),
    "half a character": (b'{"workerGroup": "a", "workerId": "\\ud800"}', INPUT),
    "half a character beside a long number": (b'{"workerGroup": 1234567890123456789, "workerId": "\\ud800"}', INPUT),
    "no number": (b'{"workerGroup": "a", "workerId": NaN}', MALFORMED),
    "a number beyond all": (b'{"workerGroup": "a", "workerId": 1e400}', MALFORMED),
    "depth": (b"[" * 500 + b"]" * 500, INPUT),
    "absurd depth": (b"[" * 100_000 + b"]" * 100_000, MALFORMED),
    "a name too long": ({"workerGroup": "a" * 39, "workerId": "b"}, SCHEMA),
    "a name with a slash": ({"workerGroup": "a/b", "workerId": "b"}, SCHEMA),
    "a name that ends its line": ({"workerGroup": "a\n", "workerId": "b"}, SCHEMA),
    "too many tasks": ({"workerGroup": "a", "workerId": "b", "tasks": 33}, SCHEMA),
    "no tasks": ({"workerGroup": "a", "workerId": "b", "tasks": 0}, SCHEMA),
}


@pytest.mark.parametrize(("body", "expected"), BODIES.values(), ids=BODIES)
def test_a_body_that_makes_no_sense_is_refused(queue, body, expected):
    assert refusal_code(queue.post(f"/claim-work/{LINUX}", body)) == expected


@pytest.mark.parametrize("type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_must_declare_json(queue, type):
    body = {"workerGroup": "a", "workerId": "b"}

    assert refusal_code(queue.send("POST", f"/claim-work/{LINUX}", body, type=type)) == MALFORMED


def claim(queue, body: bytes, type: str = "application/json", **headers: str):
    return queue.client.generic("POST", f"/api/queue/v1/claim-work/{LINUX}", body, type, headers=headers)


CLAIM = '{"workerGroup": "größe", "workerId": "b"}'
BODIES = {
    "UTF-8": (CLAIM.encode(), "utf-8"),
    "UTF-8 in quotes": (CLAIM.encode(), '"UTF-8"'),
    "Latin-1": (CLAIM.encode("latin-1"), "iso-8859-1"),
    "UTF-16": (CLAIM.encode("utf-16"), "utf-16"),
    "a byte order mark": (b"\xef\xbb\xbf" + CLAIM.encode(), "utf-8"),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_is_read_in_the_charset_that_it_declares(queue, case):
    body, charset = BODIES[case]

    reply = claim(queue, body, f"application/json; charset={charset}")

    # The schema of the name permits no such letter: the message has the text that was read.
    assert refusal_code(reply) == (400, "InputValidationError")
    assert "größe" in reply.json()["requestInfo"]["payload"]["workerGroup"]


def test_an_unknown_charset_is_415_and_named(queue):
    reply = claim(queue, b"{}", "application/json; charset=klingon")

    assert refusal_code(reply) == (415, "InputError")
    assert "'klingon'" in reply.json()["message"]


def test_a_compressed_body_is_read_and_an_unknown_encoding_is_415(queue):
    body = gzip.compress(b'{"workerGroup": "a", "workerId": "b"}')

    assert claim(queue, body, content_encoding="gzip").status_code == 200
    assert refusal_code(claim(queue, body, content_encoding="br")) == (415, "InputError")
    assert refusal_code(claim(queue, body[:-9], content_encoding="gzip")) == INPUT
    assert refusal_code(claim(queue, gzip.compress(b" " * 20_000_000), content_encoding="gzip"))[0] == 413


def test_nan_is_named(queue):
    reply = claim(queue, b'{"workerGroup": "a", "workerId": NaN}')

    assert refusal_code(reply) == MALFORMED
    assert "workerId is NaN. JSON has no such number." in reply.json()["message"]


def test_a_method_without_a_body_minds_none(queue):
    id = queue.create()

    assert queue.send("POST", f"/task/{id}/cancel", b"\xff{", type="text/plain").status_code == 200


def test_a_body_beyond_ten_megabytes_is_too_large(queue):
    id, much = queue.create(), b" " * (22 * 1024 * 1024)
    queue.claim_specific_task(id)

    assert refusal_code(queue.post(f"/claim-work/{LINUX}", much[: 10 * 1024 * 1024 + 1])) == (413, "InputTooLarge")
    assert refusal_code(queue.post(f"/claim-work/{LINUX}", much)) == (413, "InputTooLarge")
    assert refusal_code(queue.post(f"/task/{id}/runs/0/completed", much)) == (413, "InputTooLarge")


PATHS = [
    "/task/short", f"/task/{NONE[:-1]}-", f"/task/{NONE}%0A", f"/task/{NONE}/status%00", "/task/%00", "/pending/linux",
    "/pending/proj/UPPER", "/pending/a/b/c", f"/task-queues/{'x' * 39}/linux", "/task-queues/linux",
    "/provisioners/a%20b", "/task-group/mine", "/provisioners/proj/worker-types/a.b/workers",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_part_of_an_address_that_cannot_be_is_refused(queue, path):
    reply = queue.get(path)

    assert reply.json() == {"error": "Not found"} or refusal_code(reply) == ARGUMENTS


@pytest.mark.parametrize("run", ["-1", "x", "1e3", "99999999999999999999999", "1.0"])
def test_a_run_has_a_number(queue, run):
    assert refusal_code(queue.post(f"/task/{NONE}/runs/{run}/reclaim")) == ARGUMENTS


OPTIONS = {
    "an unknown one": ({"colour": "crimson"}, ARGUMENTS),
    "a limit that is no number": ({"limit": "-1"}, ARGUMENTS),
    "a token that is none": ({"continuationToken": "nonsense"}, INPUT),
    "a token of another list": ({"continuationToken": "WzEsMl0"}, INPUT),
    "an absurd limit": ({"limit": "9" * 400}, None),
    "no limit": ({"limit": "0"}, None),
}


@pytest.mark.parametrize(("query", "expected"), OPTIONS.values(), ids=OPTIONS)
def test_options_are_checked(queue, query, expected):
    reply = queue.get("/task-queues", **query)

    assert reply.status_code == 200 if expected is None else refusal_code(reply) == expected


def test_an_unknown_query_parameter_is_rejected(queue):
    id = queue.create()

    assert refusal_code(queue.client.get(f"/api/queue/v1/task/{id}?limit=1")) == ARGUMENTS


def test_every_method_declares_its_scopes():
    addresses = [*urls.queue, *urls.auth, *urls.objects]
    views = [each.callback.view_class for each in addresses if hasattr(each.callback, "view_class")]
    methods = [method for view in views for method in view.methods.values()]

    unprotected = {each.name for each in methods if each.scopes is None and each.scopes_of_facts is None}
    assert unprotected == {each.name for each in methods if each.is_public}
    assert unprotected == {"ping", "version", "heartbeat", "lbheartbeat", "authenticateHawk"}
    assert schemas.SCHEMAS.keys() - {each.name for each in methods} == set()


def test_an_unsigned_caller_is_rejected_where_authentication_is_required(queue, settings):
    id = queue.create()
    settings.CONDUCTOR_API_ACCESS = "token"

    assert refusal_code(queue.get(f"/task/{id}")) == (403, "InsufficientScopes")
    assert refusal_code(queue.post(f"/task/{id}/cancel")) == (403, "InsufficientScopes")
    assert queue.get("/ping").status_code == 200


def test_a_page_of_another_site_may_not_use_an_open_server(queue):
    reply = queue.client.get(f"/api/queue/v1/task/{NONE}", headers={"origin": "https://evil.example.org"})

    assert refusal_code(reply) == (403, "InsufficientScopes")


def test_an_unknown_value_of_an_enumeration_is_answered_with_all_values(queue):
    reply = queue.send("PUT", f"/task/{NONE}", queue.definition(priority="normal"))

    assert refusal_code(reply) == SCHEMA
    assert '"highest", "very-high", "high", "medium", "low", "very-low", "lowest"' in reply.json()["message"]


class ClaimThroughTheFramework(TaskclusterView):
    """The claim, as views of other methods handle requests."""

    methods, post = ClaimWork.methods, ClaimWork.post


CLAIM = {"workerGroup": "here", "workerId": "w1", "tasks": 1}


@pytest.mark.parametrize(
    "request_of_a_worker",
    [
        {},
        {"verb": "GET"},
        {"verb": "OPTIONS"},
        {"verb": "HEAD"},
        {"type": "text/plain"},
        {"body": b"{"},
        {"body": b""},
        {"body": {"workerGroup": "here", "tasks": "many"}},
        {"body": {"workerGroup": "no group", "workerId": "w1"}},
        {"address": "no queue"},
        {"query": "?colour=crimson"},
        {"headers": {"Authorization": "Hawk nothing"}},
        {"headers": {"X-Taskcluster-Trace-Id": "abc123", "Origin": "https://example.org"}},
    ],
    ids=str,
)
def test_a_claim_is_answered_as_requests_of_other_methods(queue, request_of_a_worker):
    sent = {"verb": "POST", "type": JSON, "body": CLAIM, "address": LINUX, "query": "", "headers": {}}
    sent |= request_of_a_worker
    body = sent["body"] if isinstance(sent["body"], bytes) else json.dumps(sent["body"]).encode()
    replies = []
    for view in (ClaimWork, ClaimThroughTheFramework):
        path = f"/api/queue/v1/claim-work/{LINUX}{sent['query']}"
        request = RequestFactory().generic(sent["verb"], path, body, sent["type"], headers=sent["headers"])
        reply = view.as_view()(request, taskQueueId=sent["address"])
        replies.append((reply.status_code, reply.content, without_ids(reply)))

    assert replies[0] == replies[1]


def without_ids(reply):
    """Return the headers of a reply, with the names of those that differ for each request."""
    return {name: value if len(value) != 32 else "" for name, value in reply.headers.items()}
