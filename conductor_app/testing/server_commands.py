"""A server of the test kit: its web server, its time, and the commands that a test sends over its channel.

The web server has threads of this process, and handles requests like gunicorn.
"""

import json
import os
import shutil
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Condition, Thread
from time import monotonic, sleep
from typing import Any

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.db import connections
from django.http import StreamingHttpResponse

from ..notifications import wake_all_and_close
from ..utils import clock
from ..web.waiting_requests import SOCKET_KEY
from ..wsgi import application
from .time_control import ServedTasks, TimeControl, has_ended, has_open_task

IN_CHUNKS = "conductor.body_in_chunks"
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
DATABASE = "conductor.sqlite3"
TICK_SECONDS = 0.05


class RequestHandler(WSGIRequestHandler):
    """Handles requests like gunicorn, unlike Django's development server.

    It decodes chunked bodies, keeps the raw path that signatures cover, and exposes the connection.
    """

    def log_message(self, *_: object) -> None:
        """Write no line for a request."""

    def get_environ(self) -> dict[str, Any]:
        """Return the environment of the request."""
        environ: dict[str, Any] = {**super().get_environ(), "RAW_URI": self.path, SOCKET_KEY: self.connection}
        if self.headers.get("content-type") is None:
            environ.pop("CONTENT_TYPE", None)
        if environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
            environ[IN_CHUNKS] = BytesIO(b"".join(decode_chunks(self.rfile)))
        return environ


def decode_chunks(stream: Any) -> Iterator[bytes]:
    """Yield the chunks of a body."""
    while length := int(stream.readline().split(b";")[0], 16):
        yield stream.read(length)
        stream.readline()
    stream.readline()


class ThreadedWebServer:
    """Serves an application on a free port of this machine."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._changed = Condition()
        self._requests: set[int] = set()
        self._web = ThreadedWSGIServer(("127.0.0.1", 0), RequestHandler)
        self._web.set_app(self._answer_and_close)
        self.url = f"http://127.0.0.1:{self._web.server_port}"

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve requests during the block, and give the address."""
        thread = Thread(target=self._web.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self.url
        finally:
            self._web.shutdown()
            thread.join()
            self._web.server_close()

    def wait_for_open_requests(self) -> None:
        """Wait for requests of disconnected clients.

        Raises:
            AssertionError: when one of them does not end.
        """
        with self._changed:
            assert self._changed.wait_for(lambda: not self._requests, 15)

    def _answer_and_close(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Reply and close the connection of the thread to the database, because a kept one would keep the file open.

        The reply is complete: a generator left by a disconnected browser would close connections on collection. A
        stream of events is sent as it is made.
        """
        if IN_CHUNKS in environ:
            environ["wsgi.input"] = environ.pop(IN_CHUNKS)
        elif length := int(environ.get("CONTENT_LENGTH") or 0):
            # Read before the answer, as gunicorn's worker does: a connection closed over unread bytes is reset.
            environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(length))
        with self._changed:
            self._requests.add(id(environ))
        answer: Any = ()
        is_stream = False
        try:
            answer = self._application(environ, start_response)
            is_stream = isinstance(answer, StreamingHttpResponse) and answer["Content-Type"] == "text/event-stream"
            return self._stream(answer, environ) if is_stream else [b"".join(answer)]
        finally:
            if not is_stream:
                self._finish(answer, environ)

    def _stream(self, answer: Any, environ: dict[str, Any]) -> Iterator[bytes]:
        """Yield the parts of a stream, and close it at its end or when the client disconnects."""
        try:
            yield from answer
        finally:
            self._finish(answer, environ)

    def _finish(self, answer: Any, environ: dict[str, Any]) -> None:
        """Close the reply and the connections of its thread."""
        if hasattr(answer, "close"):
            # A file that is not closed is closed by the garbage collector in any thread, where Django
            # would close connections.
            answer.close()
        connections.close_all()
        with self._changed:
            self._requests.discard(id(environ))
            self._changed.notify_all()


Document = dict[str, Any]


def run_server(channel: socket.socket, folder: Path, template: Path) -> None:
    """Serve in the folder until the test closes the channel, and end the process."""
    try:
        os.chdir(folder)
        log = os.open("server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        shutil.copyfile(template, DATABASE)
        _serve(channel)
    finally:
        sys.stderr.flush()
        os._exit(0)


def _serve(channel: socket.socket) -> None:
    control = TimeControl()
    web = ThreadedWebServer(application)
    with web.running() as url:
        Thread(target=_execute_due_forever, args=(control,), daemon=True).start()
        lines = channel.makefile("rwb")
        lines.write(json.dumps({"url": url}).encode() + b"\n")
        lines.flush()
        for line in lines:
            lines.write(json.dumps(_answer(control, json.loads(line))).encode() + b"\n")
            lines.flush()


def _execute_due_forever(control: TimeControl) -> None:
    """Execute due timers and jobs in real time, for tests that skip nothing."""
    while True:
        control.execute_due()
        sleep(TICK_SECONDS)


def _answer(control: TimeControl, request: Document) -> Document:
    before = clock.now()
    try:
        answer = COMMANDS[request["command"]](control, request)
    except Exception as error:
        traceback.print_exc()
        return {"state": "failed", "error": f"{type(error).__name__}: {error}"}
    return {**answer, "now": clock.now(), "skipped": clock.now() - before}


def _advance(control: TimeControl, request: Document) -> Document:
    until = clock.now() + request["milliseconds"]
    return control.skip(ServedTasks.parse(request), monotonic() + request["seconds"], until=until)


def _skip(control: TimeControl, request: Document) -> Document:
    """Skip time until the run has ended, or has an open task of a reference."""
    run_id, ref = request["run"], request["ref"]
    is_reached: Callable[[], bool] = (lambda: has_open_task(run_id, ref)) if ref else (lambda: has_ended(run_id))
    return control.skip(ServedTasks.parse(request), monotonic() + request["seconds"], is_reached)


def _close_polls(control: TimeControl, request: Document) -> Document:
    """Let the polls of workers end at once, because the test ends."""
    wake_all_and_close()
    return {"state": "reached"}


COMMANDS: dict[str, Callable[[Any, Document], Document]] = {
    "advance": _advance,
    "skip": _skip,
    "close": _close_polls,
    "time": lambda control, request: {"state": "reached"},
}
