"""The deadline of an exchange: the maximum time that a task holds its connections."""

import contextlib
import os
import socket
import threading


class Deadline:
    """Shuts down every connection of one exchange when its time has passed.

    A timeout of each read is not sufficient against a server that sends single bytes.
    """

    def __init__(self, seconds):
        self.seconds, self.has_passed = seconds, False
        self._lock, self._sockets = threading.Lock(), []
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self):
        CURRENT.deadline = self
        self._timer.start()
        return self

    def __exit__(self, *_):
        CURRENT.deadline = None
        self._timer.cancel()
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()

    def watch(self, sock):
        """Keep a second descriptor of the connection: TLS and the response take over the first."""
        with self._lock:
            self._sockets.append(socket.socket(fileno=os.dup(sock.fileno())))
            if self.has_passed:
                shut_down_socket(self._sockets[-1])

    def _pass(self):
        with self._lock:
            self.has_passed = True
            for sock in self._sockets:
                shut_down_socket(sock)


CURRENT = threading.local()


def watch_socket(sock):
    """Register the socket with the deadline of this thread's exchange, and return it."""
    deadline = getattr(CURRENT, "deadline", None)
    if deadline:
        deadline.watch(sock)
    return sock


def shut_down_socket(sock):
    """Shut down the socket, which wakes threads that read from or write to it."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
