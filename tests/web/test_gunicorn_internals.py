"""The contract with Gunicorn's internals. A new version that breaks it fails here first, and runs with `gthread`.

The tests of the worker, of waiting requests and of refused requests check what is done with them.
"""

import http.client
import json
import os
import socket
import tomllib
from importlib import import_module
from threading import Thread
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.http import errors, wsgi
from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import ThreadWorker

from conductor_app.web import gunicorn_internals
from tests.architecture.modules import APP, imports, modules
from tests.management.server import ROOT, Server

ANOTHER_VERSION = """
from gunicorn.http.wsgi import Response

force_close = Response.force_close
Response.force_close = lambda self, reason="": force_close(self)
"""
HEAD = "POST /api/workflow/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n"


@pytest.fixture(autouse=True)
def _forget():
    yield
    gunicorn_internals.unsupported_worker_parts.cache_clear()
    gunicorn_internals.unsupported_header_parts.cache_clear()


def test_this_version_of_gunicorn_supports_the_worker():
    assert gunicorn_internals.describe_fallback(48, 3072) is None
    assert gunicorn_internals.worker_class() == gunicorn_internals.OWN_WORKER


def test_the_permitted_versions_are_those_that_are_tested():
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["server"]

    assert f"gunicorn{gunicorn_internals.TESTED_VERSIONS}" in dependencies


@pytest.mark.parametrize("path", [*gunicorn_internals.WORKER_PARAMETERS, *gunicorn_internals.WORKER_NAMES])
@pytest.mark.parametrize("is_removed", [True, False])
def test_without_one_of_its_parts_the_own_worker_is_not_used(monkeypatch, path, is_removed):
    module, _, names = path.partition(":")
    *owner, name = names.split(".")
    holder = getattr(import_module(module), owner[0]) if owner else import_module(module)
    changed = None if is_removed else (lambda self, something: None)
    monkeypatch.setattr(holder, name, changed)

    assert gunicorn_internals.worker_class() == gunicorn_internals.PLAIN_WORKER
    assert path.replace(":", ".") in gunicorn_internals.describe_fallback(48, 3072)


def test_a_module_that_gunicorn_no_longer_has_is_a_missing_part(monkeypatch):
    monkeypatch.setattr(gunicorn_internals, "WORKER_PARAMETERS", {"gunicorn.gone:Thing.do": "self"})

    assert gunicorn_internals.unsupported_worker_parts() == ["gunicorn.gone.Thing.do"]


def test_without_the_parts_of_the_parser_repeated_headers_are_refused(monkeypatch):
    before = RequestParser.mesg_class
    monkeypatch.delattr("gunicorn.http.message.HeaderPolicy._apply_header_policy")

    gunicorn_internals.permit_repeated_headers()

    assert RequestParser.mesg_class is before
    assert "those of the Go SDK" in gunicorn_internals.describe_fallback(48, 3072)
    assert gunicorn_internals.worker_class() == gunicorn_internals.OWN_WORKER


def test_each_listed_error_exists():
    assert [name for name in gunicorn_internals.STATUS_BY_ERROR if not hasattr(errors, name)] == []


def test_what_gunicorn_calls_is_checked():
    overridden = {name for name in vars(gunicorn_internals.AdaptedWorker) if hasattr(ThreadWorker, name)}
    listed = {path.rpartition(".")[2] for path in gunicorn_internals.WORKER_PARAMETERS if "ThreadWorker" in path}

    assert overridden - {"__init__", "__module__", "__doc__"} == listed


def test_no_other_module_imports_parts_of_gunicorn():
    entry_points = {"processes/serving.py", "processes/command_line.py"}

    found = {
        (str(path.relative_to(APP)), name)
        for path, tree in modules()
        for _, name in imports(path, tree)
        if name.split(".")[0] == "gunicorn"
    }

    assert {path for path, _ in found} - entry_points == {"web/gunicorn_internals.py"}
    assert {name.split(".")[1] for path, name in found if path in entry_points} == {"app"}


def send(server: Server, received: str) -> tuple[int, bytes]:
    """Send bytes, and return the status and the whole response."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(received.encode())
        response = b"".join(iter(lambda: client.recv(65_536), b""))
    return int(response.split(b" ")[1]), response


@pytest.fixture(scope="module")
def fallback(tmp_path_factory):
    """Return a server with a version of Gunicorn that the worker does not support."""
    folder = tmp_path_factory.mktemp("another_gunicorn")
    (folder / "sitecustomize.py").write_text(ANOTHER_VERSION)
    started = Server(folder, PYTHONPATH=str(folder), SCRIPT_NAME="/prefix").wait_until_up()
    yield started
    started.stop()


def test_with_another_version_the_server_starts_and_warns_once(fallback):
    lines = [line for line in fallback.words().splitlines() if "Gunicorn" in line]

    assert len(lines) == 1
    assert "gunicorn.http.wsgi.Response.force_close" in lines[0]
    assert "at most 48 instead of 3072 may wait" in lines[0]
    assert "Install gunicorn~=27.0." in lines[0]
    assert fallback.get("/health")[0] == 200


def test_with_another_version_a_poll_waits_in_a_thread(fallback):
    client = http.client.HTTPConnection("127.0.0.1", fallback.port, timeout=60)
    client.request("GET", "/prefix/api/tasks/poll/batch/cut?timeout=300")
    response = client.getresponse()

    assert (response.status, json.loads(response.read())) == (200, [])


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ("Content-Type: application/json\r\nContent-Type: application/json\r\n", 404),
        ("Content-Type: application/json\r\nContent-Type: text/plain\r\n", 400),
        ("Content-Length: 3\r\n", 400),
        ("Transfer-Encoding: chunked\r\n", 400),
        ("Host: b\r\n", 400),
        (f"X: {'a' * 40_000}\r\n", 431),
    ],
)
def test_with_another_version_the_same_requests_are_refused(fallback, headers, expected):
    head = HEAD.replace("/api", "/prefix/api")

    status, response = send(fallback, f"{head}{headers}\r\n{{}}")

    assert status == expected, response


@pytest.fixture
def client_socket():
    """Return the server's socket of a connection, and the client's."""
    ours, theirs = socket.socketpair()
    adopted = gunicorn_internals.ClientSocket.adopt(ours)
    yield adopted, theirs
    adopted.close()
    theirs.close()


def test_a_response_reaches_a_client_that_reads_slowly(client_socket):
    ours, client = client_socket
    sent, received = bytes(range(256)) * 20_000, bytearray()

    def read() -> None:
        while len(received) < len(sent):
            received.extend(client.recv(1000))

    reader = Thread(target=read)
    reader.start()
    ours.sendall(sent)
    reader.join()

    assert received == sent


def test_a_client_that_does_not_read_ends_the_response(client_socket):
    ours, _client = client_socket
    ours.settimeout(0.01)

    with pytest.raises(TimeoutError):
        ours.sendall(bytes(10_000_000))


def test_a_socket_never_blocks_its_file_descriptor(client_socket):
    ours, _client = client_socket

    for is_blocking in (True, False, True):
        ours.setblocking(is_blocking)
        assert not os.get_blocking(ours.fileno())

    assert ours.gettimeout() == gunicorn_internals.IO_SECONDS


@pytest.mark.parametrize(
    ("method", "status", "headers", "parts", "writes"),
    [
        ("GET", "200 OK", [("Content-Length", "4")], [b"body"], [b"body"]),
        ("GET", "200 OK", [("Content-Length", "4")], [b"bo", b"dy"], [b"", b"bo", b"dy"]),
        ("HEAD", "200 OK", [("Content-Length", "4")], [b"body"], [b""]),
        ("GET", "204 No Content", [], [b""], [b""]),
        ("GET", "200 OK", [], [b"body"], [b"", b"4\r\nbody\r\n", b"0\r\n\r\n"]),
    ],
)
def test_a_whole_body_is_sent_together_with_its_head(method, status, headers, parts, writes):
    gunicorn_internals.join_heads_and_bodies()
    request = SimpleNamespace(method=method, version=(1, 1), should_close=lambda: False)
    written: list[bytes] = []
    response = wsgi.Response(request, SimpleNamespace(sendall=written.append), Config())

    response.start_response(status, headers)
    for part in parts:
        response.write(part)
    response.close()

    assert [each.partition(b"\r\n\r\n")[2] if each.startswith(b"HTTP/1.1 ") else each for each in written] == writes
