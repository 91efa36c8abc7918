"""Connections that send requests byte by byte, kept open as those of workers are."""

import http.client
import socket
import time
from contextlib import suppress
from dataclasses import dataclass

from qa.hostile.hostile_request import Request

SECONDS, WAITING_SECONDS = 30, 3
"""Time limits of a reply, and of a reply that may wait for an event."""
MAX_BODY = 20_000_000


@dataclass(frozen=True)
class Reply:
    """The reply to a request. Status 0: no reply within the time limit; -1: the connection was closed."""

    status: int
    body: bytes = b""
    headers: str = ""
    seconds: float = 0.0


class Connection:
    """One connection, opened again after the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def send(self, request: Request) -> Reply:
        """Send a request. Repeat it on a new connection if the server closed the kept one before it replied."""
        was_kept = self._socket is not None
        began = time.monotonic()
        reply = self._send_once(request, began)
        if reply.status == -1 and was_kept:
            reply = self._send_once(request, began)
        return reply

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send_once(self, request: Request, began: float) -> Reply:
        try:
            if self._socket is None:
                self._socket = socket.create_connection(("127.0.0.1", self._port), SECONDS)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(WAITING_SECONDS if request.can_wait else SECONDS)
            # The server may reply and close the connection before it has read the whole body.
            with suppress(BrokenPipeError, ConnectionResetError):
                self._socket.sendall(request.encoded)
            return self._read_reply(request, began)
        except TimeoutError:
            self.close()
            return Reply(0, seconds=time.monotonic() - began)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Reply(-1, str(error).encode(), seconds=time.monotonic() - began)

    def _read_reply(self, request: Request, began: float) -> Reply:
        assert self._socket is not None
        response = http.client.HTTPResponse(self._socket, method=request.method)
        try:
            response.begin()
            body = response.read(MAX_BODY)
            is_kept = not response.will_close and response.isclosed()
        finally:
            response.close()
        if request.ends_connection or not is_kept:
            self.close()
        return Reply(response.status, body, str(response.headers), time.monotonic() - began)
