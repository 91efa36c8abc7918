"""Whether a client is still there: what is handed to one that has hung up waits for the end of its lease."""

import socket
from collections.abc import Callable

from django.http import HttpRequest

SOCKET_KEY = "gunicorn.socket"
"""Where gunicorn keeps the connection of a request; servers that show none are believed that the client is there."""


def disconnect_check(request: HttpRequest) -> Callable[[], bool]:
    """A question that can be asked again and again, for the cost of one call to the system."""
    connection = request.META.get(SOCKET_KEY)
    return (lambda: False) if connection is None else (lambda: is_connection_closed(connection))


def is_connection_closed(connection: socket.socket) -> bool:
    """Whether the other end has closed it; what it has sent meanwhile is left where it is."""
    try:
        # Past what TLS makes of it, which cannot peek.
        return socket.socket.recv(connection, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
