"""Requests that wait without a thread: the contract of server and application, and the moments at which they continue.

A client that has disconnected is noticed: an attempt that is given to it is blocked until its lease expires.
"""

import heapq
import select
import socket
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import count
from threading import Lock
from time import monotonic
from typing import Any, Protocol

from django.http import HttpRequest

ACCEPTS_WAITING_KEY = "conductor_app.accepts_waiting_requests"
"""The key in the environment of a request whose server accepts a `WaitingRequest` as the response."""


class FinishedResponse(Protocol):
    """The parts of Django's response that a server sends."""

    status_code: int
    reason_phrase: str

    def items(self) -> Iterable[tuple[str, str]]:
        """Return the headers."""

    def __iter__(self) -> Iterator[bytes]: ...


class WaitingRequest(Protocol):
    """A request whose response is not known yet. The server calls its methods from any thread, one at a time."""

    @property
    def seconds(self) -> float:
        """Return the maximum time of the current wait."""

    def begin_wait(self, wake: Callable[[], None]) -> bool:
        """Call `wake` when the wait is over before its time. Returns False if it is over now."""

    def resume(self) -> FinishedResponse | None:
        """Continue after a wait. Returns the response, or None if the request waits again."""

    def abandon(self) -> None:
        """End the wait without a response, because the client has disconnected."""

    def close(self) -> None:
        """Release what the request holds, after the response has been sent."""


SOCKET_KEY = "gunicorn.socket"
"""The key under which gunicorn passes the connection of a request. Without it, clients count as connected."""


def disconnect_check(request: HttpRequest) -> Callable[[], bool]:
    """Return a function that returns True if the client has disconnected. A call costs one system call."""
    connection = request.META.get(SOCKET_KEY)
    return (lambda: False) if connection is None else (lambda: is_connection_closed(connection))


def is_connection_closed(connection: socket.socket) -> bool:
    """Return True if the client has closed the connection. Received data stays in the socket."""
    # A socket with a timeout would wait in `recv`, even with MSG_DONTWAIT.
    poller = select.poll()
    try:
        poller.register(connection, select.POLLIN)
        if not poller.poll(0):
            return False
        # Read below TLS, which cannot peek.
        return socket.socket.recv(connection, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except (OSError, ValueError):
        return True


class ClientConnection(Protocol):
    """A connection as Gunicorn stores it, and what the worker of this server adds."""

    sock: socket.socket
    timeout: float
    """The monotonic time at which Gunicorn closes the connection if it is idle."""
    initialized: bool
    parser: Any
    buffered: Any
    """The received bytes of the next request, as the worker stores them."""
    is_large: bool
    discarded: int

    def init(self) -> None:
        """Begin to read requests."""

    def close(self) -> None:
        """Close the socket."""


class WaitingConnection:
    """A request that waits, with what is needed to send its response.

    `response`: Gunicorn's writer of the response. `began_at`: the local time of the request, for the access log.
    """

    __slots__ = ("began_at", "conn", "environ", "request", "response", "waiting")

    def __init__(self, waiting: WaitingRequest, conn: ClientConnection, response: Any, environ: dict[str, Any]) -> None:
        self.waiting, self.conn, self.response, self.environ = waiting, conn, response, environ
        self.request, self.began_at = response.req, datetime.now()


class ConnectionWait:
    """One wait of a waiting request. The first event takes the request; later events find none."""

    __slots__ = ("connection", "is_ended_early", "is_open", "is_watched")

    def __init__(self, connection: WaitingConnection) -> None:
        self.connection: WaitingConnection | None = connection
        self.is_open = self.is_ended_early = False
        self.is_watched = True


class WaitingConnections:
    """The waits of a web process, in the order of their ends. Its methods may be called from any thread.

    `interrupt`: wakes the main thread, which sleeps until the next end.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self.lock = Lock()
        self._interrupt = interrupt
        self._numbers = count()
        self._ends: list[tuple[float, int, ConnectionWait]] = []
        self._sleeps_until = 0.0

    def open(self, wait: ConnectionWait, seconds: float) -> bool:
        """Let events take the request from now on. Returns False if its wait has ended already."""
        ends_at = monotonic() + seconds
        with self.lock:
            if wait.is_ended_early:
                wait.connection = None
                return False
            wait.is_open = True
            heapq.heappush(self._ends, (ends_at, next(self._numbers), wait))
            is_earlier = ends_at < self._sleeps_until
            if is_earlier:
                self._sleeps_until = ends_at
        if is_earlier:
            self._interrupt()
        return True

    def take(self, wait: ConnectionWait) -> WaitingConnection | None:
        """Return the request, unless another event has taken it or its wait is not open yet."""
        with self.lock:
            wait.is_ended_early = True
            connection = wait.connection if wait.is_open else None
            if connection is not None:
                wait.connection = None
            return connection

    def stop_watching(self, wait: ConnectionWait) -> bool:
        """Return True for the first caller, which must remove the connection from the poller."""
        with self.lock:
            was_watched, wait.is_watched = wait.is_watched, False
        return was_watched

    def limit_sleep(self, seconds: float) -> float:
        """Return the time until the next end, at most `seconds`. The main thread calls it before it sleeps."""
        now = monotonic()
        with self.lock:
            while self._ends and self._ends[0][2].connection is None:
                heapq.heappop(self._ends)
            if self._ends:
                seconds = min(seconds, max(self._ends[0][0] - now, 0.0))
            self._sleeps_until = now + seconds
        return seconds

    def take_due(self) -> list[tuple[ConnectionWait, WaitingConnection]]:
        """Return the requests whose time has ended."""
        now, due = monotonic(), []
        with self.lock:
            # The main thread is awake until it calls `limit_sleep`.
            self._sleeps_until = 0.0
            while self._ends and (self._ends[0][0] <= now or self._ends[0][2].connection is None):
                wait = heapq.heappop(self._ends)[2]
                if wait.connection is not None:
                    due.append((wait, wait.connection))
                    wait.connection = None
        return due
