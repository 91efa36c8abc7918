"""Gunicorn's threaded worker, whose threads stay with a kept connection for a moment: its next request is near."""

import select
from threading import Lock
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

LINGER_MS = 50
"""How long a thread waits for the next request of the connection that it has just answered.

A worker that has reported polls or reports again within milliseconds. Handing its connection back to the main thread
and out again meanwhile takes two more threads, each of which has to wait for the interpreter.
"""


class LingeringWorker(ThreadWorker):
    """Half of the threads at most wait so; all others hand their connection back at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most, self.lingering, self._lock = self.cfg.threads // 2, 0, Lock()

    def handle(self, conn: TConn) -> Any:
        """Answer the requests of a connection until it falls silent."""
        kept = super().handle(conn)
        while kept is True and self.alive and self.is_readable(conn):
            kept = super().handle(conn)
        return kept

    def is_readable(self, conn: TConn) -> bool:
        """Whether the next request comes soon; False at once where too many threads wait already."""
        with self._lock:
            if self.lingering >= self._most:
                return False
            self.lingering += 1
        try:
            waiting = select.poll()
            waiting.register(conn.sock, select.POLLIN)
            return bool(waiting.poll(LINGER_MS))
        finally:
            with self._lock:
                self.lingering -= 1
