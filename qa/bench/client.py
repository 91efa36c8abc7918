"""Minimal HTTP client, so that generating the load costs less than the server that is measured."""

import socket
from urllib.parse import urlsplit

import orjson


class Client:
    """A keep-alive connection to one server."""

    def __init__(self, url: str, token: str = "") -> None:
        parts = urlsplit(url)
        self.address = (parts.hostname or "127.0.0.1", parts.port or 80)
        self.base = parts.path.rstrip("/")
        self.headers = f"Host: {parts.netloc}\r\n" + (f"X-Authorization: {token}\r\n" if token else "")
        self.socket: socket.socket | None = None
        self.unread = b""

    def get(self, path: str) -> tuple[int, bytes]:
        """Send a GET request and return its status and body."""
        return self.send(f"GET {self.base}{path} HTTP/1.1\r\n{self.headers}\r\n".encode())

    def post(self, path: str, value: object, method: str = "POST") -> tuple[int, bytes]:
        """Send a POST request with a JSON body and return its status and body."""
        body = orjson.dumps(value)
        head = (
            f"{method} {self.base}{path} HTTP/1.1\r\n{self.headers}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return self.send(head.encode() + body)

    def send(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and return its status and body; reconnect once if the server closed the connection.

        Raises:
            AssertionError: the server closed the connection twice.
        """
        for is_last in (False, True):
            try:
                connection = self.socket or self._ensure_connected()
                connection.sendall(request)
                return self._read_reply(connection)
            except (ConnectionError, EOFError):
                self.close()
                if is_last:
                    raise
        raise AssertionError

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.socket, self.unread = None, b""

    def _ensure_connected(self) -> socket.socket:
        self.socket = socket.create_connection(self.address, timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.socket

    def _read_reply(self, connection: socket.socket) -> tuple[int, bytes]:
        data = self.unread
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._receive(connection)
        head, body = data[:end].lower(), data[end + 4 :]
        status = int(head[9:12])
        if b"transfer-encoding: chunked" in head:
            return status, self._read_chunks(connection, body)
        place = head.find(b"content-length:")
        length = int(head[place + 15 : place + 30].split(b"\r")[0]) if place >= 0 else 0
        while len(body) < length:
            body += self._receive(connection)
        self.unread = body[length:]
        if b"connection: close" in head:
            self.close()
        return status, body[:length]

    def _read_chunks(self, connection: socket.socket, data: bytes) -> bytes:
        chunks = b""
        while True:
            while b"\r\n" not in data:
                data += self._receive(connection)
            line, data = data.split(b"\r\n", 1)
            size = int(line, 16)
            while len(data) < size + 2:
                data += self._receive(connection)
            chunks, data = chunks + data[:size], data[size + 2 :]
            if not size:
                self.unread = data
                return chunks

    @staticmethod
    def _receive(connection: socket.socket) -> bytes:
        data = connection.recv(65536)
        if not data:
            raise EOFError("the server closed the connection")
        return data
