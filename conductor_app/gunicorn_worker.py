"""Gunicorn's threaded worker, with threads that wait briefly for the next request of their connection."""

import select
from threading import Lock
from time import monotonic
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

LINGER_MS = 50
"""The time that a thread waits for the next request of its connection, in milliseconds.

After a report, a worker sends the next request within milliseconds. Passing its connection to the main thread and on to
another thread would cost two switches, each of which waits for the interpreter lock.
"""
SKIPPED_BYTES, SKIP_SECONDS = 32 << 20, 5
"""The limits for reading and discarding the rest of a request: bytes and seconds."""


class KeepAliveThreadWorker(ThreadWorker):
    """At most half of the threads wait for a request. Others return their connection to the main thread at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_waiting, self.waiting_count, self._lock = self.cfg.threads // 2, 0, Lock()

    def handle(self, conn: TConn) -> Any:
        """Handle the requests of a connection until it is idle."""
        keeps_alive = super().handle(conn)
        while keeps_alive is True and self.alive and self.is_readable(conn):
            keeps_alive = super().handle(conn)
        return keeps_alive

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Handle a request, and discard its unread rest, so that the connection can be reused.

        A client repeats a report with an expired token at once, which would fail on a closed connection.
        """
        keeps_alive = super().handle_request(req, conn)
        return keeps_alive and conn.parser.finish_body(monotonic() + SKIP_SECONDS, SKIPPED_BYTES)

    def is_readable(self, conn: TConn) -> bool:
        """Return True if the next request arrives within LINGER_MS. Returns False at once if too many threads wait."""
        with self._lock:
            if self.waiting_count >= self._max_waiting:
                return False
            self.waiting_count += 1
        try:
            poller = select.poll()
            poller.register(conn.sock, select.POLLIN)
            return bool(poller.poll(LINGER_MS))
        finally:
            with self._lock:
                self.waiting_count -= 1
