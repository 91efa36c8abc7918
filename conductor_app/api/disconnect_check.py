"""Detection of disconnected clients: an attempt that is given to one is blocked until its lease expires."""

import select
import socket
from collections.abc import Callable

from django.http import HttpRequest

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
