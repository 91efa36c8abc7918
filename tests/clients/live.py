"""A whole server in this process: a threaded web server on a free port, its sweeps, and its built-in workers."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Event, Thread

from django.core.servers.basehttp import ThreadedWSGIServer
from django.db import connections
from django.test.testcases import QuietWSGIRequestHandler

from conductor_app import clock
from conductor_app.engine.sweeps import sweep_until
from conductor_app.workers.publishing import publish_off
from conductor_app.workers.runner import work_off
from conductor_app.wsgi import application

TICK_MS = 100


@contextmanager
def running_server() -> Iterator[str]:
    """The address of a server that runs while the block does, on the test's database."""
    stopping = Event()
    web = ThreadedWSGIServer(("127.0.0.1", 0), QuietWSGIRequestHandler)
    web.set_app(answer_and_let_go)
    threads = [Thread(target=web.serve_forever, args=(0.05,)), Thread(target=ring_the_bell, args=(stopping,))]
    for thread in threads:
        thread.start()
    try:
        yield f"http://127.0.0.1:{web.server_port}"
    finally:
        stopping.set()
        web.shutdown()
        for thread in threads:
            thread.join()
        web.server_close()
        all_are_answered()


_answering = Condition()
_requests: set[int] = set()


def answer_and_let_go(environ, start_response):
    """Answer, and keep no connection: a client that keeps its own open must not hold on to the test's database."""
    with _answering:
        _requests.add(id(environ))
    try:
        yield from application(environ, start_response)
    finally:
        connections.close_all()
        with _answering:
            _requests.discard(id(environ))
            _answering.notify_all()


def all_are_answered() -> None:
    """Wait for requests whose clients are gone: their transactions would meet the emptying of the tables."""
    with _answering:
        assert _answering.wait_for(lambda: not _requests, 15)


def ring_the_bell(stopping: Event) -> None:
    """Do what Celery's jobs do: sweep on time, and serve the built-in workers."""
    while not stopping.is_set():
        sweep_until(clock.now() + TICK_MS)
        work_off(stopping.is_set)
        publish_off(stopping.is_set)
        stopping.wait(TICK_MS / 1000)
    connections.close_all()
