"""A threaded web server in this process, for tests: it handles requests like gunicorn."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from threading import Condition, Thread
from typing import Any

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.db import connections
from django.http import StreamingHttpResponse

from ..web.waiting_requests import SOCKET_KEY

IN_CHUNKS = "conductor.body_in_chunks"
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


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
