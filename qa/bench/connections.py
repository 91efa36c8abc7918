"""HTTP client with many connections in one thread, so that the load costs little beside the measured servers."""

import re
import select
import socket
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

CONTENT_LENGTH = re.compile(rb"content-length: *(\d+)")
LAST_CHUNK = b"\r\n0\r\n\r\n"
RECEIVED_BYTES = 1 << 18
GRACE_SECONDS = 6.0


class Reply(NamedTuple):
    status: int
    body: bytes


Script = Generator[bytes | None, Any, None]
"""A client: yields complete requests, and receives a Reply to each. It yields None to be continued a little later."""


class Requests:
    """Complete requests to one server."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self.base = parts.path.rstrip("/")
        self.headers = f"Host: {parts.netloc}\r\n" + (f"X-Authorization: {token}\r\n" if token else "")

    def get(self, path: str) -> bytes:
        return f"GET {self.base}{path} HTTP/1.1\r\n{self.headers}\r\n".encode()

    def post(self, path: str, body: bytes) -> bytes:
        """Return a request with a JSON body."""
        head = f"POST {self.base}{path} HTTP/1.1\r\n{self.headers}Content-Type: application/json\r\nContent-Length: "
        return b"%b%d\r\n\r\n%b" % (head.encode(), len(body), body)


class Connection:
    """A keep-alive connection that executes a script."""

    def __init__(self, address: tuple[str, int], script: Script, epoll: select.epoll) -> None:
        self.address, self.script, self.epoll = address, script, epoll
        self.socket: socket.socket | None = None
        self.received = bytearray()

    def send(self, request: bytes) -> None:
        """Send a request. Connect first if there is no connection, or if the server has closed it."""
        self.received.clear()
        if self.socket is not None:
            try:
                self.socket.sendall(request)
                return
            except ConnectionError:
                self.close()
        self.socket = socket.create_connection(self.address, timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.epoll.register(self.socket, select.EPOLLIN)
        self.socket.sendall(request)

    def receive(self) -> Reply | None:
        """Read what has arrived. Return the reply once it is complete, and status 0 if the connection was lost."""
        assert self.socket is not None
        try:
            data = self.socket.recv(RECEIVED_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            self.close()
            return Reply(0, b"")
        self.received += data
        return self._parse()

    def _parse(self) -> Reply | None:
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self.received[:end]).lower()
        status = int(head[9:12])
        if b"transfer-encoding: chunked" in head:
            if not self.received.endswith(LAST_CHUNK):
                return None
            body = join_chunks(bytes(self.received[end + 4 :]))
        else:
            length = CONTENT_LENGTH.search(head)
            body = bytes(self.received[end + 4 :])
            if length and len(body) < int(length[1]):
                return None
        if b"connection: close" in head:
            self.close()
        return Reply(status, body)

    def close(self) -> None:
        if self.socket is not None:
            self.epoll.unregister(self.socket)
            self.socket.close()
        self.socket = None


def join_chunks(data: bytes) -> bytes:
    """Return the contents of a complete chunked body."""
    contents: list[bytes] = []
    while True:
        line, _, data = data.partition(b"\r\n")
        size = int(line, 16)
        if not size:
            return b"".join(contents)
        contents.append(data[:size])
        data = data[size + 2 :]


def run_scripts(url: str, scripts: Iterable[Script], has_ended: Callable[[], bool]) -> None:
    """Execute the scripts at the same time, each on a connection of its own, until all have ended.

    Scripts that wait for a reply when the load has ended may receive it for `GRACE_SECONDS`.
    """
    parts = urlsplit(url)
    address = (parts.hostname or "127.0.0.1", parts.port or 80)
    epoll = select.epoll()
    paused = [(Connection(address, script, epoll), None) for script in scripts]
    waiting: dict[int, Connection] = {}
    ends_at = 0.0
    while waiting or paused:
        if has_ended():
            ends_at = ends_at or time.monotonic() + GRACE_SECONDS
            if time.monotonic() > ends_at:
                break
        ready: list[tuple[Connection, Reply | None]] = list(paused)
        paused = []
        for descriptor, _ in epoll.poll(0.005 if ready else 1):
            connection = waiting[descriptor]
            if (reply := connection.receive()) is not None:
                del waiting[descriptor]
                ready.append((connection, reply))
        for connection, reply in ready:
            try:
                request = next(connection.script) if reply is None else connection.script.send(reply)
            except StopIteration:
                connection.close()
                continue
            if request is None:
                paused.append((connection, None))
            else:
                connection.send(request)
                assert connection.socket is not None
                waiting[connection.socket.fileno()] = connection
    epoll.close()
