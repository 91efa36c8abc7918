"""Keep-alive connections: a thread waits briefly for the next request of the connection that it served."""

import os
import socket
from threading import Thread
from time import monotonic
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn

from conductor_app import gunicorn_worker


@pytest.fixture
def connection():
    """Return both ends: the server's connection as gunicorn keeps it, and the client's socket."""
    ours, theirs = socket.socketpair()
    yield SimpleNamespace(sock=ours), theirs
    ours.close()
    theirs.close()


def worker(threads):
    cfg = Config()
    cfg.set("threads", threads)
    return gunicorn_worker.KeepAliveThreadWorker(1, os.getpid(), [], None, 30, cfg, Logger(cfg))


def refuse(environ, start_response):
    """Reply without reading the request."""
    start_response("401 Unauthorized", [("Content-Length", "0")])
    return []


def test_a_request_that_has_come_is_answered_by_the_same_thread(connection):
    kept, client = connection
    client.sendall(b"GET / HTTP/1.1\r\n")

    assert worker(threads=4).is_readable(kept)


def test_a_silent_connection_is_handed_back(connection):
    kept, _client = connection
    began = monotonic()

    assert not worker(threads=4).is_readable(kept)

    assert monotonic() - began < 5


def test_what_nobody_has_read_of_a_request_does_not_cost_its_connection(connection):
    ours, client = connection
    refusing = worker(threads=4)
    refusing.wsgi = refuse
    kept = TConn(refusing.cfg, ours.sock, ("127.0.0.1", 1), ("127.0.0.1", 8000))
    request = b"POST /api/tasks HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000
    sender = Thread(target=client.sendall, args=(request,))
    sender.start()

    assert refusing.handle(kept) is True

    sender.join()


def test_half_of_the_threads_are_never_kept_waiting(connection, monkeypatch):
    kept, client = connection
    monkeypatch.setattr(gunicorn_worker, "LINGER_MS", 10_000)
    crowded = worker(threads=2)
    first = Thread(target=crowded.is_readable, args=(kept,))
    first.start()
    while not crowded.waiting_count:
        pass

    assert not crowded.is_readable(kept)

    client.sendall(b"x")
    first.join()
    assert crowded.waiting_count == 0
