"""The receiver of workflow status messages: an HTTP server that records each message."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import orjson

from .history import History


class StatusListener:
    """Records the id of each message and the workflow that it is about."""

    def __init__(self, history: History) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                history.record(
                    "notified",
                    message=self.headers.get("X-Conductor-Message-Id", ""),
                    run=body.get("workflowInstanceId") or body.get("workflowId"),
                    status=body.get("status"),
                )
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/status"
        Thread(target=self._server.serve_forever, name="listener", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
