"""The HTTP task against real servers: requests, results, and rejected inputs."""

import gzip
import json

import pytest

from conductor_app.system_tasks.http import Http, HttpLimits
from conductor_app.system_tasks.registry import workers
from tests.recording_web_server import json_answer, running_web_server

LOOPBACK = ("127.0.0.0/8",)


@pytest.fixture
def server():
    with running_web_server() as server:
        yield server


def perform(uri, method="GET", limits=None, **rest):
    http = Http(lambda: limits or HttpLimits(allowed_networks=LOOPBACK))
    return http.perform({"http_request": {"uri": uri, "method": method, **rest}})


def test_the_worker_is_selected_by_its_task_type():
    assert workers()["HTTP"].type == "HTTP"


def test_an_answer_becomes_the_response(server):
    server.answers["/a"] = json_answer(
        {"total": 3, "big": 12345678901234567, "part": 0.5, "none": None}, 201, x_many=["1", "2"]
    )

    outcome = perform(f"{server.url}/a")

    assert (outcome.status, outcome.reason, list(outcome.output)) == ("COMPLETED", "", ["response"])
    response = outcome.output["response"]
    assert (response["statusCode"], response["reasonPhrase"]) == (201, "Created")
    assert response["headers"]["x_many"] == ["1", "2"]
    assert response["headers"]["content-type"] == ["application/json"]
    assert response["body"] == {"total": 3, "big": 12345678901234567, "part": 0.5, "none": None}
    assert [type(value) for value in response["body"].values()] == [int, int, float, type(None)]


def test_the_request_may_be_the_input_itself(server):
    server.answers["/a"] = json_answer([1])

    outcome = Http(lambda: HttpLimits(LOOPBACK)).perform({"uri": f"{server.url}/a", "method": "get"})

    assert outcome.output["response"]["body"] == [1]


def test_a_reply_that_echoes_the_credentials_of_the_address_has_stars_in_their_place(server):
    # "Ym9iOnMzY3JldA==" is bob:s3cret, as the HTTP client sends it.
    server.answers["/a"] = json_answer({"headers": {"Authorization": "Basic Ym9iOnMzY3JldA=="}})

    outcome = perform(f"{server.url.replace('//', '//bob:s3cret@')}/a")

    assert outcome.output["response"]["body"] == {"headers": {"Authorization": "Basic ***"}}


BODIES = {
    "an object": (b'{"a": [1, 2.5]}', {"a": [1, 2.5]}),
    "a list with a byte order mark": (b"\xef\xbb\xbf[1]", [1]),
    "a number": (b" 12 ", 12),
    "a text in quotes": (b'"hello"', "hello"),
    "true": (b"true", "true"),
    "null": (b"null", "null"),
    "nothing": (b"", None),
    "plain text": (b"hello", "hello"),
    "text that is labelled JSON": (b'{"a": 1', '{"a": 1'),
    "numbers that JSON does not have": (b"[NaN]", "[NaN]"),
    "a number too large to write down": (b"[1e999]", "[1e999]"),
    "digits without end": (b"9" * 5000, "9" * 5000),
    "nesting without end": (b"[" * 100_000, "[" * 100_000),
    "half of a surrogate pair": (b'["a\\uD800"]', ["a?"]),
    "bytes that are no text": (b"\xff\xfe{", "\ufffd\ufffd{"),
}


@pytest.mark.parametrize(("sent", "received"), BODIES.values(), ids=BODIES)
def test_a_body_is_read_as_json_where_it_is_json(server, sent, received):
    server.answers["/a"] = (200, {"content-type": "application/json"}, sent)

    body = perform(f"{server.url}/a").output["response"]["body"]

    assert body == received
    assert type(body) is type(received)


@pytest.mark.parametrize(
    ("content_type", "sent", "received"),
    [
        ("text/plain; charset=iso-8859-1", "café".encode("latin-1"), "café"),
        ("text/plain", "café".encode(), "café"),
        ("text/plain; charset=nonsense", "café".encode(), "café"),
        ("text/plain; charset=punycode", b"caf-dma", "caf-dma"),
        ("text/plain; charset=base64", b"aGVsbG8=", "aGVsbG8="),
    ],
)
def test_text_is_decoded_by_the_charset_that_it_names(server, content_type, sent, received):
    server.answers["/a"] = (200, {"content-type": content_type}, sent)

    assert perform(f"{server.url}/a").output["response"]["body"] == received


def test_a_compressed_body_is_unpacked(server):
    server.answers["/a"] = (200, {"content-encoding": "gzip"}, gzip.compress(b'{"a": 1}'))
    server.answers["/bad"] = (200, {"content-encoding": "gzip"}, b"this is not gzip")

    assert perform(f"{server.url}/a").output["response"]["body"] == {"a": 1}
    assert "does not match its Content-Encoding" in perform(f"{server.url}/bad").reason


def test_headers_and_body_are_sent_as_specified(server):
    server.answers["/a"] = json_answer({})
    headers = {"X-Text": "a", "X-Number": 5, "X-Flag": True, "X-List": ["a", 1], "X-None": None}

    perform(f"{server.url}/a?q=1", "POST", headers=headers, body={"name": "Zoë", "n": 1}, accept=["a/b", "c/d"])

    (asked,) = server.asked
    assert (asked["method"], asked["path"]) == ("POST", "/a?q=1")
    assert json.loads(asked["body"]) == {"name": "Zoë", "n": 1}
    sent = [asked["headers"][name] for name in ("x-text", "x-number", "x-flag", "x-list", "x-none")]
    assert sent == ["a", "5", "true", "a, 1", None]
    assert (asked["headers"]["accept"], asked["headers"]["content-type"]) == ("a/b, c/d", "application/json")


def test_a_header_of_the_task_overrides_the_defaults(server):
    server.answers["/a"] = json_answer({})

    perform(
        f"{server.url}/a", "POST", headers={"content-type": "text/csv", "ACCEPT": "x/y"}, body="a,b", contentType="z/z"
    )

    assert server.asked[0]["headers"].get_all("content-type") == ["text/csv"]
    assert server.asked[0]["headers"].get_all("accept") == ["x/y"]
    assert server.asked[0]["body"] == "a,b"


def test_an_object_is_sent_as_a_form_for_that_content_type(server):
    server.answers["/a"] = json_answer({})

    perform(
        f"{server.url}/a", "POST", body={"a": "b c", "d": [1, True]}, contentType="application/x-www-form-urlencoded"
    )

    assert server.asked[0]["body"] == "a=b+c&d=1&d=true"


def test_headers_that_belong_to_the_transport_are_not_the_tasks_to_set(server):
    server.answers["/a"] = json_answer({})

    perform(
        f"{server.url}/a",
        "POST",
        headers={"Content-Length": "1", "Transfer-Encoding": "chunked", "Host": "evil"},
        body="abc",
    )

    assert server.asked[0]["body"] == "abc"
    assert server.asked[0]["headers"]["host"] == server.url.removeprefix("http://")


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_a_refusal_by_the_server_fails_with_text_and_status_code(server, status):
    server.answers["/a"] = json_answer({"error": "no such order"}, status)

    outcome = perform(f"{server.url}/a?token=secret")

    assert outcome.status == "FAILED"
    assert outcome.reason.startswith(f"Failed to invoke HTTP task due to: {status} ")
    assert outcome.output["statusCode"] == status
    assert outcome.output["response"].startswith(f"{status} ")
    assert "no such order" in outcome.output["response"]


@pytest.mark.parametrize("status", [300, 304])
def test_an_unexpected_status_fails_with_the_complete_response(server, status):
    server.answers["/a"] = (status, {}, b"choose one" if status == 300 else b"")

    outcome = perform(f"{server.url}/a")

    assert (outcome.status, outcome.output["response"]["statusCode"]) == ("FAILED", status)
    assert outcome.reason == "choose one" if status == 300 else outcome.reason.startswith("Failed to invoke")


@pytest.mark.parametrize("flag", [True, "true"])
def test_an_asynchronous_task_continues_after_the_response(server, flag):
    server.answers["/a"] = json_answer({"accepted": True}, 202)
    http = Http(lambda: HttpLimits(LOOPBACK))

    inside = http.perform({"http_request": {"uri": f"{server.url}/a", "method": "POST", "asyncComplete": flag}})
    beside = http.perform({"http_request": {"uri": f"{server.url}/a", "method": "POST"}, "asyncComplete": flag})

    assert (inside.status, beside.status) == ("IN_PROGRESS", "IN_PROGRESS")
    assert inside.output["response"]["body"] == {"accepted": True}


def test_an_asynchronous_task_with_a_failed_request_fails(server):
    assert perform(f"{server.url}/nowhere", asyncComplete=True).status == "FAILED"


def test_head_has_no_body(server):
    server.answers["/a"] = json_answer({"a": 1})

    assert perform(f"{server.url}/a", "HEAD").output["response"]["body"] is None


GOOD_INPUT = {"uri": "http://a.example/", "method": "GET"}
BAD_INPUTS = {
    "no uri": ({"uri": None}, "uri is missing"),
    "no method": ({"method": ""}, "method is missing"),
    "a request that is text": ({"http_request": "http://a.example/"}, "http_request must be an object"),
    "a request that is empty": ({"http_request": {}}, "method is missing"),
    "a method that is none": ({"method": "CONNECT"}, "method must be one of"),
    "a method that is a list": ({"method": ["GET"]}, "method must be one of"),
    "a uri that is a number": ({"uri": 5}, "uri must begin with"),
    "a file": ({"uri": "file:///etc/passwd"}, "uri must begin with"),
    "a uri without a host": ({"uri": "http:///a"}, "uri must begin with"),
    "a broken IPv6 host": ({"uri": "http://[::1/a"}, "uri must begin with"),
    "a port that is none": ({"uri": "http://a.example:x/"}, "uri is invalid"),
    "a host with an endless label": ({"uri": f"http://{'a' * 300}.example/"}, "cannot be resolved"),
    "headers that are a list": ({"headers": [1]}, "headers must be"),
    "a header that begins another": ({"headers": {"X-A": "secret\r\nX-B: 2"}}, "header X-A contains a line break"),
    "a header name with a line end": ({"headers": {"X-A\r\nX-B": "2"}}, "is not a valid header name"),
    "a header beyond Latin-1": ({"headers": {"X-A": "€"}}, "the value of header X-A"),
    "an accept that begins a header": ({"accept": "a\nb"}, "header Accept"),
    "a timeout that is a word": ({"readTimeOut": "soon"}, "readTimeOut must"),
    "a timeout below zero": ({"connectionTimeOut": -1}, "connectionTimeOut must"),
    "a timeout without end": ({"readTimeOut": 10**400}, "readTimeOut must"),
    "a body that is no JSON": ({"body": float("nan")}, "body cannot be"),
}


@pytest.mark.parametrize(("mistake", "reason"), BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_an_input_that_describes_no_request_fails_with_a_clear_reason(mistake, reason):
    outcome = Http(HttpLimits).perform(GOOD_INPUT | mistake)

    assert outcome.status == "FAILED"
    assert outcome.reason.startswith("Failed to invoke HTTP task due to: ")
    assert reason in outcome.reason
    assert "secret" not in outcome.reason


def test_a_private_address_is_refused_for_good_and_the_reason_names_the_setting(server):
    outcome = perform(f"{server.url}/a?token=secret", limits=HttpLimits())

    assert outcome.status == "FAILED_WITH_TERMINAL_ERROR"
    assert "127.0.0.1 is not a public address" in outcome.reason
    assert "HTTP_TASK_ALLOWED_NETWORKS" in outcome.reason
    assert "secret" not in outcome.reason
    assert server.asked == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_reason_does_not_reveal_whether_a_forbidden_port_is_open(scheme, server):
    closed = perform(f"{scheme}://127.0.0.1:1/", limits=HttpLimits())
    is_open = perform(f"{scheme}://127.0.0.1:{server.server_port}/", limits=HttpLimits())

    assert (closed.status, is_open.status) == ("FAILED_WITH_TERMINAL_ERROR",) * 2


def test_a_redirect_is_followed(server):
    server.answers |= {"/a": (302, {"location": "/b?c=1"}, b"moved"), "/b": json_answer({"here": True})}

    assert perform(f"{server.url}/a", headers={"Authorization": "mine"}).output["response"]["body"] == {"here": True}
    assert [asked["path"] for asked in server.asked] == ["/a", "/b?c=1"]
    assert server.asked[1]["headers"]["authorization"] == "mine"


def test_a_redirect_to_a_forbidden_address_is_refused(server):
    server.answers["/a"] = (302, {"location": f"http://127.0.0.2:{server.server_port}/b"}, b"")

    outcome = perform(f"{server.url}/a", limits=HttpLimits(("127.0.0.1/32",)))

    assert outcome.status == "FAILED_WITH_TERMINAL_ERROR"
    assert "127.0.0.2" in outcome.reason
    assert len(server.asked) == 1


def test_a_redirect_to_something_that_is_not_http_is_refused(server):
    server.answers["/a"] = (302, {"location": "file:///etc/passwd"}, b"")

    assert "does not begin with http://" in perform(f"{server.url}/a").reason


def test_redirects_in_a_circle_end(server):
    server.answers["/a"] = (307, {"location": "/a"}, b"")

    assert "redirected more than 5 times" in perform(f"{server.url}/a").reason
    assert len(server.asked) == 6


def test_another_origin_learns_no_credentials(server):
    other = f"http://localhost:{server.server_port}"
    server.answers |= {"/a": (307, {"location": f"{other}/b"}, b""), "/b": json_answer({})}

    perform(
        f"{server.url}/a",
        "POST",
        HttpLimits((*LOOPBACK, "::1")),
        headers={"Authorization": "s", "Cookie": "s", "X-A": "1"},
    )

    headers = server.asked[1]["headers"]
    assert (headers["authorization"], headers["cookie"], headers["x-a"]) == (None, None, "1")


@pytest.mark.parametrize(("status", "then"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_a_redirected_post_keeps_its_body_only_for_307_and_308(server, status, then):
    server.answers |= {"/a": (status, {"location": "/b"}, b""), "/b": json_answer({})}

    perform(f"{server.url}/a", "POST", body="abc")

    assert (server.asked[1]["method"], server.asked[1]["body"]) == (then, "abc" if then == "POST" else "")


def test_a_body_that_is_too_large_is_not_read_to_its_end(server):
    server.answers["/a"] = (200, {}, b"x" * 5000)

    assert perform(f"{server.url}/a", limits=HttpLimits(LOOPBACK, max_bytes=5000)).status == "COMPLETED"
    assert "the body is larger than" in perform(f"{server.url}/a", limits=HttpLimits(LOOPBACK, max_bytes=4999)).reason


def test_a_small_body_that_unpacks_to_a_large_one_is_too_large(server):
    server.answers["/a"] = (200, {"content-encoding": "gzip"}, gzip.compress(b"x" * (20 << 20)))

    assert "the body is larger than 10 MB" in perform(f"{server.url}/a").reason


def test_the_next_address_is_tried_if_the_first_does_not_respond(server):
    server.answers["/a"] = json_answer([1])

    outcome = perform(f"http://localhost:{server.server_port}/a", limits=HttpLimits((*LOOPBACK, "::1/128")))

    assert outcome.output["response"]["body"] == [1]
    assert server.asked[0]["headers"]["host"] == f"localhost:{server.server_port}"


def test_reasons_contain_no_password_and_no_query(server):
    host = server.url.removeprefix("http://")

    outcome = perform(f"http://me:secret@{host}/a?key=secret#secret")

    assert "/a" in outcome.reason
    assert "secret" not in outcome.reason + outcome.output["response"]
    assert server.asked[0]["headers"]["authorization"].startswith("Basic ")


def test_cookies_do_not_pass_from_one_task_to_the_next(server):
    server.answers["/a"] = json_answer({}, **{"set-cookie": "session=mine; Path=/"})
    http, inputs = Http(lambda: HttpLimits(LOOPBACK)), {"uri": f"{server.url}/a", "method": "GET"}

    outcomes = [http.perform(inputs) for _ in range(2)]

    assert outcomes[0].output["response"]["headers"]["set-cookie"] == ["session=mine; Path=/"]
    assert server.asked[1]["headers"]["cookie"] is None


def test_a_thread_reuses_its_connection(server):
    server.answers["/a"] = json_answer({})
    http, inputs = Http(lambda: HttpLimits(LOOPBACK)), {"uri": f"{server.url}/a", "method": "GET"}

    for _ in range(3):
        http.perform(inputs)

    assert len({asked["from"] for asked in server.asked}) == 1


def test_proxy_variables_are_not_obeyed(server, monkeypatch):
    server.answers["/a"] = json_answer([1])
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    assert perform(f"{server.url}/a").status == "COMPLETED"
