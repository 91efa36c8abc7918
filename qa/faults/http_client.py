"""A client that notices failures instead of hiding them: one request, one outcome."""

import http.client
import time
from itertools import cycle
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

TIMEOUT_SECONDS = 12.0
OK = (200, 204)


class Reply(NamedTuple):
    """The reply to a request. Status 0: there is none, so that the effect of the request is unknown."""

    status: int
    body: Any = None

    @property
    def is_ok(self) -> bool:
        return self.status in OK


class FaultClient:
    """A connection to one of several servers. After a failure it continues with the next one."""

    def __init__(self, urls: list[str], token: str, start: int = 0) -> None:
        addresses = [urlsplit(url).netloc for url in urls]
        self._addresses = cycle(addresses[start % len(addresses) :] + addresses[: start % len(addresses)])
        self._headers = {"Content-Type": "application/json"} | ({"X-Authorization": token} if token else {})
        self._connection: http.client.HTTPConnection | None = None
        self.address = ""
        self.connected_at = 0.0

    def send(self, method: str, path: str, value: object = None) -> Reply:
        """Send one request under /api."""
        try:
            if self._connection is None:
                self.address = next(self._addresses)
                self.connected_at = time.time()
                self._connection = http.client.HTTPConnection(self.address, timeout=TIMEOUT_SECONDS)
            body = None if value is None else orjson.dumps(value)
            self._connection.request(method, f"/api{path}", body, self._headers)
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Reply(0, f"{type(error).__name__}: {error}"[:200])
        if response.status >= 500:
            self.close()
        return Reply(response.status, _parse(content))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _parse(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return content.decode(errors="replace")
