"""A web server that sends the recorded replies of a real conductor-oss server, or what a test makes of them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.recording_web_server import WebServer, json_answer, running_web_server

RECORDING = Path(__file__).parent / "recorded" / "conductor_oss.json"
API = "/api"


class RecordedSource:
    """The replies by path. A test replaces those that it is about."""

    def __init__(self, web: WebServer) -> None:
        self.web = web
        self.address = web.url + API
        for path, (status, content_type, text) in json.loads(RECORDING.read_text()).items():
            web.answers[API + path] = (status, {"content-type": content_type}, text.encode())

    def documents(self, path: str) -> list[dict[str, Any]]:
        """Return the recorded documents of a list."""
        return json.loads(self.web.answers[API + path][2])

    def reply(self, path: str, value: Any, status: int = 200, **headers: str) -> None:
        """Replace a reply by a JSON value."""
        self.web.answers[API + path] = json_answer(value, status, **headers)

    def reply_text(self, path: str, text: bytes, status: int = 200, content_type: str = "application/json") -> None:
        """Replace a reply by a text."""
        self.web.answers[API + path] = (status, {"content-type": content_type}, text)

    def requests(self, path: str) -> list[dict[str, Any]]:
        """Return the requests of a path, each with the parameters of its query."""
        found = [each for each in self.web.asked if urlsplit(each["path"]).path == API + path]
        return [each | {"query": parse_qs(urlsplit(each["path"]).query)} for each in found]


@contextmanager
def recorded_source() -> Iterator[RecordedSource]:
    """Yield a source that runs during the block."""
    with running_web_server() as web:
        yield RecordedSource(web)
