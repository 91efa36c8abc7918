"""Gunicorn's threaded worker with threads that wait briefly for the next request of a connection."""

import select
from threading import Lock
from time import monotonic
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

LINGER_MS = 50
"""The time that a thread waits for the next request of its connection.

A worker that has reported polls or reports again within milliseconds. Passing its connection to the main thread and
back takes two more threads, each of which has to wait for the interpreter.
"""
SKIPPED_BYTES, SKIP_SECONDS = 32 << 20, 5
"""The limits for skipping the unread rest of a request: bytes and seconds."""


class KeepAliveThreadWorker(ThreadWorker):
    """Half of the threads at most wait so; all others hand their connection back at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most, self.waiting_count, self._lock = self.cfg.threads // 2, 0, Lock()

    def handle(self, conn: TConn) -> Any:
        """Handle the requests of a connection until it is idle."""
        kept = super().handle(conn)
        while kept is True and self.alive and self.is_readable(conn):
            kept = super().handle(conn)
        return kept

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Handle a request, and skip its unread rest so that the connection can serve the next one.

        A report that is refused for its token is repeated at once: over a closed connection it would fail.
        """
        kept = super().handle_request(req, conn)
        return kept and conn.parser.finish_body(monotonic() + SKIP_SECONDS, SKIPPED_BYTES)

    def is_readable(self, conn: TConn) -> bool:
        """Return True if the next request arrives soon; False at once if too many threads wait already."""
        with self._lock:
            if self.waiting_count >= self._most:
                return False
            self.waiting_count += 1
        try:
            waiting = select.poll()
            waiting.register(conn.sock, select.POLLIN)
            return bool(waiting.poll(LINGER_MS))
        finally:
            with self._lock:
                self.waiting_count -= 1
