"""Requests byte by byte, as other languages' SDKs send them."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

HEADERS = {
    # Labels every body JSON, raw text and empty ones too, and says nothing of what it accepts.
    "java": {"Accept-Encoding": "gzip", "User-Agent": "okhttp/4.12.0", "Content-Type": "application/json"},
    # Asks for JSON everywhere, also where the answer is plain text.
    "go": {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "Go-http-client/1.1"},
    # Takes anything; names a content type only where there is a body.
    "javascript": {"Accept": "*/*", "Accept-Encoding": "gzip, deflate", "User-Agent": "undici"},
    # Names a content type on GET as well, and fills every body that it has nothing for with {}.
    "python": {"Accept": "application/json", "Accept-Encoding": "gzip", "Content-Type": "application/json"},
}
SDKS = tuple(HEADERS)


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    content_type: str | None
    length: str | None
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body, which must say that it is JSON: the Go SDK looks."""
        assert self.content_type and self.content_type.startswith("application/json"), self
        return json.loads(self.body)

    @property
    def plain_text(self) -> str:
        """The body, which must be bare text: as HTML the Go SDK refuses it, as JSON the JavaScript SDK does."""
        assert self.content_type and self.content_type.startswith("text/plain"), self
        return self.text

    @property
    def is_empty(self) -> bool:
        """Without a body, and not labelled JSON, which would make the JavaScript SDK parse it."""
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
