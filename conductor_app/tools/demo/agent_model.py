"""The model of the demo: a script that replies as an OpenAI-compatible server does."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

AMOUNT = 42.0


class ScriptedModel(ThreadingHTTPServer):
    """A server of a model. `requests`: the bodies that it has received; each would be paid at a provider."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedModel

    def do_POST(self) -> None:
        """Reply to a chat completion."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.server.requests.append(body)
        content = json.dumps(completion(body["messages"])).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def completion(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the reply to a conversation: the next call of a tool, or the answer."""
    order = next(word for message in messages for word in str(message["content"]).split() if word.startswith("A-"))
    done = [call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()]
    refused = any(message["role"] == "user" and message["content"] == "No" for message in messages)
    if refused:
        message: dict[str, Any] = {"content": f"Order {order} was not refunded, because the refund was refused."}
    elif "refund_order" in done:
        message = {"content": f"Order {order} is refunded: {AMOUNT:.2f} EUR."}
    elif "look_up_order" in done:
        message = call_of("refund_order", {"order": order, "amount": AMOUNT})
    else:
        message = call_of("look_up_order", {"order": order})
    size = sum(len(str(each["content"])) for each in messages)
    return {
        "id": f"script-{len(messages)}",
        "object": "chat.completion",
        "created": 0,
        "model": "script",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                "message": {"role": "assistant", **message},
            }
        ],
        "usage": {"prompt_tokens": size // 4, "completion_tokens": 20, "total_tokens": size // 4 + 20},
    }


def call_of(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a message that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": f"call_{name}", "type": "function", "function": function}]}


@contextmanager
def running_model() -> Iterator[ScriptedModel]:
    """Yield a model that replies during the block."""
    model = ScriptedModel()
    Thread(target=model.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield model
    finally:
        model.shutdown()
        model.server_close()
