"""Slow, half-open and silent clients do not delay others on a real server."""

import resource
import socket
from contextlib import ExitStack
from time import monotonic
from urllib.request import urlopen

import pytest

from tests.management.server import Server

CLIENTS = 1_000
POST = b"POST /api/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SLOW = {
    "silent": b"",
    "half a head": b"GET /api/metadata/taskdefs HTTP/1.1\r\nHost: localhost",
    "half a small body": POST + b"Content-Length: 100\r\n\r\n{",
    "half a large body": POST + b"Content-Length: 1000000\r\n\r\n{",
    "chunks without an end": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    "unread replies": b"GET /static/ops/editor.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
}


@pytest.fixture(scope="module")
def server(new_data_folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * CLIENTS + 500)), hard))
    started = Server(new_data_folder("server")).wait_until_up()
    yield started
    started.stop()


def seconds_of_reply(server: Server, path: str) -> float:
    began = monotonic()
    with urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=20) as reply:
        assert reply.status == 200
    return monotonic() - began


@pytest.mark.parametrize("kind", SLOW)
def test_a_thousand_slow_clients_delay_no_health_check_and_no_other_client(server, kind):
    with ExitStack() as connections:
        for _ in range(CLIENTS):
            client = connections.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(("127.0.0.1", server.port))
            client.sendall(SLOW[kind])

        for path in ("/health", *(["/api/metadata/taskdefs"] if kind != "unread replies" else [])):
            # The bound of the specification, which a server without a free thread misses each time, by seconds.
            assert min(seconds_of_reply(server, path) for _ in range(3)) < 1
