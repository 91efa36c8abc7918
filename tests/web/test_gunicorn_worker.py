"""Keep-alive connections: a thread waits briefly for the next request of the connection that it served."""

import os
import selectors
import socket
import subprocess
import sys
from collections import Counter
from concurrent.futures import Future
from contextlib import ExitStack
from threading import Thread
from time import monotonic
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn

from conductor_app.web import gunicorn_worker
from conductor_app.web.gunicorn_internals import CURRENT_SECONDS, OWN_WORKER, ConnectionCounts
from conductor_app.web.request_framing import RequestState
from tests.free_port import free_port


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
    while refusing.receive(kept) and kept.buffered.state is RequestState.INCOMPLETE:
        pass

    assert refusing.handle_large(kept) is True

    sender.join()


def gunicorn_connection(serving, connection):
    """Return gunicorn's connection for the server's end."""
    serving.poller = selectors.DefaultSelector()
    serving.method_queue.init()
    serving.tpool = serving.get_thread_pool()
    serving.nr_conns = 1
    return TConn(serving.cfg, connection[0].sock, ("127.0.0.1", 1), ("127.0.0.1", 8000))


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"])
def test_an_incomplete_request_occupies_no_thread_and_is_closed_at_its_deadline(connection, sent):
    serving = worker(threads=4)
    accepted = gunicorn_connection(serving, connection)
    connection[1].sendall(sent)

    serving.enqueue_req(accepted)

    assert (list(serving.pending_conns), serving.tpool._work_queue.qsize()) == ([accepted], 0)
    accepted.timeout = monotonic() - 1
    serving.murder_pending()
    assert (connection[1].recv(10), serving.nr_conns) == (b"", 0)


def test_sending_one_byte_after_the_other_does_not_extend_the_deadline(connection):
    serving = worker(threads=4)
    accepted = gunicorn_connection(serving, connection)
    serving.enqueue_req(accepted)
    deadline = accepted.timeout

    connection[1].sendall(b"G")
    serving.on_pending_socket_readable(accepted, accepted.sock)

    assert accepted.timeout == deadline


def test_a_late_request_is_closed_even_if_a_later_deadline_was_registered_first(connection):
    serving = worker(threads=4)
    accepted = gunicorn_connection(serving, connection)
    serving.enqueue_req(accepted)
    accepted.timeout = monotonic() - 1
    serving.pending_conns.appendleft(SimpleNamespace(timeout=monotonic() + 100))

    serving.murder_pending()

    assert connection[1].recv(10) == b""


def test_a_large_body_that_arrives_too_slowly_closes_its_connection(connection, monkeypatch):
    monkeypatch.setattr(gunicorn_worker, "BODY_SECONDS", -1)
    serving = worker(threads=4)
    serving.wsgi = lambda environ, start_response: environ["wsgi.input"].read()
    accepted = gunicorn_connection(serving, connection)
    connection[1].sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\nx")
    serving.receive(accepted)

    assert serving.handle_large(accepted) is False


def test_large_bodies_occupy_at_most_half_of_the_threads(connection):
    serving = worker(threads=2)
    serving.handle_large = lambda conn: False
    serving._free_large = 0
    accepted = gunicorn_connection(serving, connection)
    connection[1].sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\nx")

    serving.enqueue_req(accepted)

    assert (list(serving._queued_large), serving.tpool._work_queue.qsize()) == ([accepted], 0)


def closing_connection(serving, connection):
    """Return the server's end after a response that ends the connection."""
    closing = gunicorn_connection(serving, connection)
    closing.init()
    done = Future()
    done.set_result(False)
    serving.finish_request(closing, done)
    return closing


def test_closing_a_connection_waits_for_its_client_without_blocking_others(connection):
    serving = worker(threads=4)
    closing_connection(serving, connection)

    assert connection[1].recv(10) == b""
    assert serving.nr_conns == 1

    connection[1].close()
    serving.wait_for_and_dispatch_events(0)
    assert (serving.nr_conns, len(serving.pending_conns)) == (0, 0)


def test_a_client_that_does_not_close_its_connection_loses_it(connection):
    serving = worker(threads=4)
    closing = closing_connection(serving, connection)
    connection[1].sendall(b"more")
    serving.wait_for_and_dispatch_events(0)
    assert serving.nr_conns == 1

    closing.timeout = monotonic() - 1
    serving.murder_pending()

    assert (serving.nr_conns, len(serving.pending_conns)) == (0, 0)


def test_a_disconnected_client_is_released(connection):
    serving = worker(threads=4)
    accepted = gunicorn_connection(serving, connection)
    connection[1].close()

    serving.enqueue_req(accepted)

    assert (serving.nr_conns, len(serving.pending_conns)) == (0, 0)


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


def reply_with_process_id(environ, start_response):
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


@pytest.fixture
def two_processes():
    """Return the port of a server of two web processes."""
    port = free_port()
    options = ["-k", OWN_WORKER, "-w", "2", "--threads", "4", "--keep-alive", "75", "-b", f"127.0.0.1:{port}"]
    application = f"{__name__}:{reply_with_process_id.__name__}"
    server = subprocess.Popen([sys.executable, "-m", "gunicorn", *options, application], stderr=subprocess.PIPE)
    for line in server.stderr:
        if b"Booting worker" in line:
            break
    yield port
    server.terminate()
    server.communicate()


def test_connections_that_stay_open_are_spread_over_the_processes(two_processes):
    processes, first = Counter(), 0
    with ExitStack() as opened:
        # The second process starts later, and takes connections until it has as many as the first.
        while len(processes) < 2 or processes.total() < 2 * first + 40:
            client = opened.enter_context(socket.create_connection(("127.0.0.1", two_processes), timeout=60))
            client.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            processes[client.recv(65_536).rpartition(b"\r\n")[2]] += 1
            first = processes.total() if len(processes) < 2 else first

    # Otherwise, the process that has just been idle takes almost all of them.
    assert min(processes.values()) >= processes.total() * 0.4


def test_a_process_that_has_ended_has_no_connections_that_others_could_have():
    counts = ConnectionCounts()
    counts.set(1, 0, now=1000)
    counts.set(2, 3, now=1000)

    assert counts.is_more(2, 3, now=1000)
    assert not counts.is_more(1, 0, now=1000)
    assert not counts.is_more(2, 3, now=1000 + CURRENT_SECONDS)
