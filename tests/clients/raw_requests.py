"""Requests byte by byte, as other languages' SDKs send them."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

HEADERS = {
    # Sends every body with a JSON content type, also raw and empty ones, and no Accept header.
    "java": {"Accept-Encoding": "gzip", "User-Agent": "okhttp/4.12.0", "Content-Type": "application/json"},
    # Accepts JSON only, also where the reply is plain text.
    "go": {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "Go-http-client/1.1"},
    # Accepts everything; sends a content type only with a body.
    "javascript": {"Accept": "*/*", "Accept-Encoding": "gzip, deflate", "User-Agent": "undici"},
    # Sends a content type also for GET, and {} in place of an empty body.
    "python": {"Accept": "application/json", "Accept-Encoding": "gzip", "Content-Type": "application/json"},
}
SDKS = tuple(HEADERS)


@dataclass(frozen=True)
class Reply:
    """A reply."""

    status: int
    content_type: str | None
    length: str | None
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        """Return the parsed body. Assert that its content type is JSON, because the Go SDK requires it."""
        assert self.content_type and self.content_type.startswith("application/json"), self
        return json.loads(self.body)

    @property
    def plain_text(self) -> str:
        """Return the body.

        Assert that it is plain text: the Go SDK rejects HTML, and the JavaScript SDK would parse JSON.
        """
        assert self.content_type and self.content_type.startswith("text/plain"), self
        return self.text

    @property
    def is_empty(self) -> bool:
        """Return whether the body is empty and not labeled JSON, which the JavaScript SDK would parse."""
        return not self.body and self.length in ("0", None) and self.content_type is None


class Wire:
    """A server, seen by one SDK."""

    def __init__(self, server: str, sdk: str) -> None:
        self._address = urlsplit(server).netloc
        self._headers = HEADERS[sdk]

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> Reply:
        """Send a request; redirects are not followed, for a POST would lose its body."""
        sent = {**self._headers, **headers}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = HTTPConnection(self._address, timeout=15)
        try:
            connection.request(method, path, body.encode() if body is not None else None, sent)
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers["Content-Type"], answer.headers["Content-Length"], answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: str | None = None, **headers: str) -> Reply:
        return self.send("POST", path, body, **headers)
