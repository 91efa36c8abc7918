"""Gunicorn's threaded worker, whose threads stay with a kept connection for a moment: its next request is near."""

import select
from threading import Lock
from time import monotonic
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

LINGER_MS = 50
"""How long a thread waits for the next request of the connection that it has just answered.

A worker that has reported polls or reports again within milliseconds. Handing its connection back to the main thread
and out again meanwhile takes two more threads, each of which has to wait for the interpreter.
"""
SKIPPED_BYTES, SKIP_SECONDS = 32 << 20, 5
"""What may be skipped of a request that was answered before all of it was read, and for how long."""


class KeepAliveThreadWorker(ThreadWorker):
    """Half of the threads at most wait so; all others hand their connection back at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most, self.waiting_count, self._lock = self.cfg.threads // 2, 0, Lock()

    def handle(self, conn: TConn) -> Any:
        """Answer the requests of a connection until it falls silent."""
        kept = super().handle(conn)
        while kept is True and self.alive and self.is_readable(conn):
            kept = super().handle(conn)
        return kept

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Answer a request. What was not read of it is skipped, so that its connection serves the next one.

        A report that is refused for its token is sent again at once: over a connection that was cut off it would fail.
        """
        kept = super().handle_request(req, conn)
        return kept and conn.parser.finish_body(monotonic() + SKIP_SECONDS, SKIPPED_BYTES)

    def is_readable(self, conn: TConn) -> bool:
        """Whether the next request comes soon; False at once where too many threads wait already."""
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
