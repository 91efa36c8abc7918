"""Requests that Gunicorn refuses, and headers that clients repeat, byte by byte."""

import json
import os
import socket

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import TConn

from conductor_app.web import gunicorn_internals, gunicorn_worker

JSON = "Content-Type: application/json"
CONDUCTOR, TASKCLUSTER, PAGE = "/api/metadata/taskdefs", "/api/queue/v1/task/abc", "/admin/"


@pytest.fixture(autouse=True)
def _repeated_headers(monkeypatch):
    monkeypatch.setattr(RequestParser, "mesg_class", RequestParser.mesg_class)
    gunicorn_internals.permit_repeated_headers()


def seen_and_reply(received: bytes) -> tuple[dict, str, str, bytes]:
    """Send bytes to a worker. Return the environment of the application, and the status, content type and body."""
    ours, theirs = socket.socketpair()
    cfg = Config()
    cfg.set("threads", 4)
    worker = gunicorn_worker.KeepAliveThreadWorker(1, os.getpid(), [], None, 30, cfg, Logger(cfg))
    seen: dict = {}

    def application(environ, start_response):
        seen.update(environ, body=environ["wsgi.input"].read())
        start_response("200 OK", [("Content-Length", "0")])
        return []

    worker.wsgi = application
    connection = TConn(worker.cfg, ours, ("127.0.0.1", 1), ("127.0.0.1", 8000))
    theirs.sendall(received)
    with ours, theirs:
        worker.receive(connection)
        worker.handle_single(connection)
        ours.shutdown(socket.SHUT_WR)
        head, _, body = b"".join(iter(lambda: theirs.recv(65_536), b"")).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    return seen, lines[0].split(" ", 1)[1], headers.get("content-type", ""), body


def request(*headers: str, target: str = CONDUCTOR, body: bytes = b"{}") -> bytes:
    lines = [f"POST {target} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_the_go_sdk_sends_its_content_type_twice():
    seen, status, _, _ = seen_and_reply(request("Accept: application/json", JSON, "Accept: application/json", JSON))

    assert (status, seen["CONTENT_TYPE"], seen["body"]) == ("200 OK", "application/json", b"{}")


@pytest.mark.parametrize(
    "of_call",
    ["application/json; charset=utf-8", "text/plain", "text/plain; charset=utf-8", "application/octet-stream"],
)
def test_the_go_sdk_sends_its_default_content_type_after_that_of_the_call(of_call):
    headers = ["User-Agent: Go-http-client/1.1", f"Content-Type: {of_call}", JSON]

    seen, status, _, _ = seen_and_reply(request(*headers))

    assert (status, seen["CONTENT_TYPE"]) == ("200 OK", of_call)


@pytest.mark.parametrize(
    "headers",
    [
        ["User-Agent: Go-http-client/1.1", JSON, "Content-Type: text/plain"],
        ["User-Agent: Go-http-client/1.1", "Content-Type: application/xml", JSON],
        ["User-Agent: curl/8", "Content-Type: text/plain", JSON],
        ["Content-Type: text/plain", JSON],
        [JSON, JSON, "Content-Type: text/plain"],
        ["Content-Type: multipart/form-data; boundary=a", "Content-Type: multipart/form-data; boundary=A"],
    ],
)
def test_other_contradictory_content_types_are_refused(headers):
    seen, status, _, _ = seen_and_reply(request(*headers))

    assert (seen, status) == ({}, "400 Bad Request")


@pytest.mark.parametrize("name", ["content-type", "CONTENT-TYPE"])
def test_a_repeated_header_may_have_another_case(name):
    seen, status, _, _ = seen_and_reply(request(JSON, f"{name}:  application/json "))

    assert (status, seen["CONTENT_TYPE"]) == ("200 OK", "application/json")


def test_a_repeated_content_type_may_have_its_media_type_in_another_case():
    first, second = "application/json; charset=utf-8", "Application/JSON;charset=utf-8"

    seen, status, _, _ = seen_and_reply(request(f"Content-Type: {first}", f"Content-Type: {second}"))

    assert (status, seen["CONTENT_TYPE"]) == ("200 OK", first)


@pytest.mark.parametrize("name", ["Authorization", "X-Authorization"])
def test_a_repeated_token_counts_once(name):
    seen, _, _, _ = seen_and_reply(request(f"{name}: token", f"{name}: token"))

    assert seen[f"HTTP_{name.upper().replace('-', '_')}"] == "token"


@pytest.mark.parametrize("name", ["Content-Type", "Authorization", "X-Authorization"])
def test_a_header_with_two_values_is_refused_in_the_format_of_conductor(name):
    _, status, content_type, body = seen_and_reply(request(f"{name}: a/b", f"{name}: a/c"))

    document = json.loads(body)
    assert (status, content_type) == ("400 Bad Request", "application/json")
    assert document["message"] == f"The header {name} is sent more than once, with different values. Send it once."
    assert (document["status"], type(document["status"]), document["retryable"]) == (400, int, False)


def test_a_header_with_two_values_is_refused_in_the_format_of_taskcluster():
    _, status, content_type, body = seen_and_reply(request(JSON, "Content-Type: text/plain", target=TASKCLUSTER))

    document = json.loads(body)
    assert (status, content_type, document["code"]) == ("400 Bad Request", "application/json", "InputError")
    assert document["message"].startswith("The header Content-Type is sent more than once")
    assert document.keys() == {"code", "message", "requestInfo"}


REFUSED = {
    "two lengths": (["Content-Length: 2"], "400 Bad Request"),
    "two equal hosts": (["Host: a"], "400 Bad Request"),
    "two other hosts": (["Host: b"], "400 Bad Request"),
    "a length and chunks": (["Transfer-Encoding: chunked"], "400 Bad Request"),
    "chunks twice": (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "400 Bad Request"),
    "an unknown coding": (["Transfer-Encoding: rot13"], "501 Not Implemented"),
    "a name with a space": (["Bad Name: 1"], "400 Bad Request"),
    "a line without a colon": (["no colon"], "400 Bad Request"),
    "a control character": (["X: a\x01b"], "400 Bad Request"),
    "an expectation": (["Expect: miracles"], "417 Expectation Failed"),
    "a large header": ([f"X: {'a' * 20_000}"], "431 Request Header Fields Too Large"),
    "many headers": ([f"X{number}: 1" for number in range(120)], "431 Request Header Fields Too Large"),
}


@pytest.mark.parametrize("target", [CONDUCTOR, TASKCLUSTER, PAGE, f"http://host.example.org{CONDUCTOR}"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_gunicorn_refuses_has_the_format_of_the_api(case, target):
    headers, expected = REFUSED[case]

    seen, status, content_type, body = seen_and_reply(request(*headers, target=target))

    assert (seen, status) == ({}, expected)
    assert content_type == ("text/plain; charset=utf-8" if target == PAGE else "application/json")
    assert b"<" not in body
    if target == TASKCLUSTER:
        assert f"statusCode: {expected[:3]}" in json.loads(body)["message"]
    elif target != PAGE:
        assert json.loads(body)["status"] == int(expected[:3])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"POST /api/tasks", "400 Bad Request"),
        (b"POST /api/a b HTTP/1.1", "400 Bad Request"),
        (b"POST /api/tasks HTTP/9.9", "400 Bad Request"),
        (b"p /api/tasks HTTP/1.1", "400 Bad Request"),
        (b"POST /api/" + b"a" * 9_000 + b" HTTP/1.1", "414 Request-URI Too Long"),
    ],
)
def test_a_bad_first_line_is_refused_in_the_format_of_the_api(line, expected):
    _, status, content_type, body = seen_and_reply(line + b"\r\nHost: a\r\n\r\n")

    assert (status, content_type, json.loads(body)["status"]) == (expected, "application/json", int(expected[:3]))


def test_a_line_without_a_path_is_refused_as_plain_text():
    _, status, content_type, body = seen_and_reply(b"hello\r\n\r\n")

    assert (status, content_type) == ("400 Bad Request", "text/plain; charset=utf-8")
    assert b"hello" in body


def test_a_broken_chunk_is_refused_in_the_format_of_the_api():
    head = f"POST {CONDUCTOR} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()

    _, status, content_type, body = seen_and_reply(head + b"zz\r\n{}\r\n0\r\n\r\n")

    assert (status, content_type, json.loads(body)["status"]) == ("400 Bad Request", "application/json", 400)
