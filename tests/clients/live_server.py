"""A whole server in this process: a threaded web server on a free port, its sweeps, and its built-in workers."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from threading import Condition, Event, Thread
from typing import Any

from django.core.servers.basehttp import ThreadedWSGIServer
from django.db import connections
from django.http import StreamingHttpResponse
from django.test.testcases import QuietWSGIRequestHandler

from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.processes.sweeps import sweep_until
from conductor_app.system_tasks.runner import run_built_in_workers
from conductor_app.utils import clock
from conductor_app.web.waiting_requests import SOCKET_KEY
from conductor_app.wsgi import application

TICK_MS = 100
IN_CHUNKS = "live.body_in_chunks"


class Handler(QuietWSGIRequestHandler):
    """Handle requests like gunicorn, unlike Django's development server: decode chunked bodies, keep the raw path that
    signatures cover, and expose the connection.
    """

    def get_environ(self):
        environ = {**super().get_environ(), "RAW_URI": self.path, SOCKET_KEY: self.connection}
        if self.headers.get("content-type") is None:
            environ.pop("CONTENT_TYPE", None)
        if environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
            environ[IN_CHUNKS] = BytesIO(b"".join(encode_chunks(self.rfile)))
        return environ


def encode_chunks(stream) -> Iterator[bytes]:
    """Yield the chunks of the body, each with its length."""
    while length := int(stream.readline().split(b";")[0], 16):
        yield stream.read(length)
        stream.readline()
    stream.readline()


@contextmanager
def running_server() -> Iterator[str]:
    """Yield the URL of a server on the test database that runs during the block."""
    stopping = Event()
    web = ThreadedWSGIServer(("127.0.0.1", 0), Handler)
    web.set_app(answer_and_close)
    threads = [Thread(target=web.serve_forever, args=(0.05,)), Thread(target=run_periodic_jobs, args=(stopping,))]
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
        wait_for_open_requests()


_answering = Condition()
_requests: set[int] = set()


def answer_and_close(environ, start_response):
    """Reply and close the connection, because a kept connection would keep the test database open.

    The reply is complete: a generator left by a disconnected browser would close connections on collection. A stream of
    events is sent as it is made.
    """
    if IN_CHUNKS in environ:
        environ["wsgi.input"] = environ.pop(IN_CHUNKS)
    elif length := int(environ.get("CONTENT_LENGTH") or 0):
        # Read before the answer, as gunicorn's worker does: a connection closed over unread bytes is reset.
        environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(length))
    with _answering:
        _requests.add(id(environ))
    answer: Any = ()
    is_stream = False
    try:
        answer = application(environ, start_response)
        is_stream = isinstance(answer, StreamingHttpResponse) and answer["Content-Type"] == "text/event-stream"
        return streamed(answer, environ) if is_stream else [b"".join(answer)]
    finally:
        if not is_stream:
            finish(answer, environ)


def streamed(answer: Any, environ: dict[str, Any]) -> Iterator[bytes]:
    """Yield the parts of a stream, and close it at its end or when the client disconnects."""
    try:
        yield from answer
    finally:
        finish(answer, environ)


def finish(answer: Any, environ: dict[str, Any]) -> None:
    """Close the reply and the connections of its thread."""
    if hasattr(answer, "close"):
        # A file that is not closed is closed by the garbage collector in any thread, where Django
        # would close connections.
        answer.close()
    connections.close_all()
    with _answering:
        _requests.discard(id(environ))
        _answering.notify_all()


def wait_for_open_requests() -> None:
    """Wait for requests of disconnected clients, because their transactions would block the flush of the tables."""
    with _answering:
        assert _answering.wait_for(lambda: not _requests, 15)


def run_periodic_jobs(stopping: Event) -> None:
    """Run Celery's jobs: sweeps on time, and the built-in workers."""
    while not stopping.is_set():
        sweep_until(clock.now() + TICK_MS)
        run_built_in_workers(stopping.is_set)
        publish_due_events(stopping.is_set)
        stopping.wait(TICK_MS / 1000)
    connections.close_all()
