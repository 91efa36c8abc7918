"""The deadline of an exchange, after which all its connections are closed."""

import contextlib
import os
import socket
import threading
from typing import Protocol, Self, TypeVar


class HasDescriptor(Protocol):
    """A socket, or a connection on one."""

    def fileno(self) -> int: ...


WatchedT = TypeVar("WatchedT", bound=HasDescriptor)


class Deadline:
    """Shuts down every connection of one exchange when its time has passed.

    Timeouts of single reads do not suffice, because a server may send single bytes.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.has_passed = seconds, False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        CURRENT.deadline = self
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.deadline = None
        self._timer.cancel()
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()

    def watch(self, sock: HasDescriptor) -> None:
        """Watch a connection through a copy of its descriptor, because TLS and the response take over the original."""
        with self._lock:
            self._sockets.append(socket.socket(fileno=os.dup(sock.fileno())))
            if self.has_passed:
                shut_down_socket(self._sockets[-1])

    def _pass(self) -> None:
        with self._lock:
            self.has_passed = True
            for sock in self._sockets:
                shut_down_socket(sock)


CURRENT = threading.local()


def watch_socket(sock: WatchedT) -> WatchedT:
    """Register the socket with the deadline of this thread's exchange, and return it."""
    deadline = getattr(CURRENT, "deadline", None)
    if deadline:
        deadline.watch(sock)
    return sock


def shut_down_socket(sock: socket.socket) -> None:
    """Shut down the socket, which wakes the threads that read from it or write to it."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
