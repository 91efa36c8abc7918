"""A server with OpenAI's API for trials of prompts: it answers every chat with the same text."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.recording_web_server import WebServer, json_answer, running_web_server

ANSWER = "Bonjour Ann"


@contextmanager
def running_model_server(settings: Any) -> Iterator[WebServer]:
    """Yield the server of the integration `openai`, which the settings define."""
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    settings.CONDUCTOR_AI_OPENAI_API_KEY = "sk-4711"
    with running_web_server() as server:
        settings.CONDUCTOR_AI_OPENAI_BASE_URL = f"{server.url}/v1"
        choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        server.answers["/v1/chat/completions"] = json_answer({**reply, "usage": usage})
        yield server
