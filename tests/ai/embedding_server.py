"""An OpenAI-compatible server whose embeddings count known words, so that tests know which are near."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.recording_web_server import WebServer, running_web_server

WORDS = ("cat", "dog", "ship", "truck", "apple", "pear", "red", "green")


class EmbeddingServer:
    """Counts the requests, and replies to each with one vector per text.

    `statuses`: those of the next replies, before `status`.
    """

    def __init__(self, web: WebServer) -> None:
        self.web = web
        self.requests: list[dict] = []
        self.status = 200
        self.statuses: list[int] = []
        web.answer_to = self._answer  # type: ignore[method-assign]

    @property
    def url(self) -> str:
        return f"{self.web.url}/v1"

    def _answer(self, path: str) -> tuple[int, dict, bytes]:
        asked = json.loads(self.web.asked[-1]["body"])
        self.requests.append(asked)
        status = self.statuses.pop(0) if self.statuses else self.status
        if status != 200 or path != "/v1/embeddings":
            return status, {"content-type": "application/json"}, b'{"error": {"message": "no luck"}}'
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        data = [{"object": "embedding", "index": place, "embedding": vector(text)} for place, text in enumerate(texts)]
        usage = {"prompt_tokens": sum(len(text.split()) for text in texts), "total_tokens": 0}
        reply = {"object": "list", "data": data, "model": asked["model"], "usage": usage}
        return 200, {"content-type": "application/json"}, json.dumps(reply).encode()


def vector(text: str) -> list[float]:
    """Return how often each known word occurs in a text."""
    return [float(text.lower().count(word)) for word in WORDS]


@contextmanager
def running_embedding_server() -> Iterator[EmbeddingServer]:
    """Yield a server on a free port."""
    with running_web_server() as web:
        yield EmbeddingServer(web)
