"""A web server for tests that returns configured replies and records its requests."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class AnsweringHandler(BaseHTTPRequestHandler):
    """Reply with the server's answer for the path."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        asked = {"method": self.command, "path": self.path, "headers": self.headers, "body": body.decode()}
        self.server.asked.append(asked | {"from": self.client_address})
        status, headers, content = self.server.answer_to(self.path.partition("?")[0])
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            for each in value if isinstance(value, list) else [value]:
                self.send_header(name, each)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = answer

    def log_message(self, *_):
        pass


class WebServer(ThreadingHTTPServer):
    """A web server that keeps `answers` by path (one, or a list whose last is repeated) and records what it was
    `asked`.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), AnsweringHandler)
        self.answers, self.asked = {}, []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def answer_to(self, path: str) -> tuple[int, dict, bytes]:
        """Return the current answer for the path."""
        found = self.answers.get(path, (404, {}, b"nothing here"))
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found

    def handle_error(self, *_) -> None:
        """Ignore errors of clients that disconnect, which some tests do."""


def json_answer(value, status=200, **headers):
    """Return a JSON answer."""
    return status, {"content-type": "application/json", **headers}, json.dumps(value).encode()


@contextmanager
def running_web_server() -> Iterator[WebServer]:
    """Yield a server on a free port."""
    server = WebServer()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
