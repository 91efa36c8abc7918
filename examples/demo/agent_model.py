"""The model and the tools of the demo: a script that replies as an OpenAI-compatible server, and an MCP server."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import uvicorn
from mcp.server import MCPServer

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


START_SECONDS = 10.0


class Tools:
    """The MCP server. `refunds`: the orders that were refunded, with their amounts."""

    def __init__(self) -> None:
        self.refunds: dict[str, float] = {}
        self.url = ""
        self.server = MCPServer("shop")
        self.server.tool()(self.look_up_order)
        self.server.tool()(self.refund_order)

    def look_up_order(self, order: str, amount: float | None = None) -> dict[str, float]:
        """Return the total of an order."""
        return {"total": AMOUNT}

    def refund_order(self, order: str, amount: float) -> dict[str, float]:
        """Pay an amount back. A repeated call for the same order changes nothing: tools may be called twice."""
        self.refunds.setdefault(order, amount)
        return {"refunded": self.refunds[order]}


@contextmanager
def running_tools() -> Iterator[Tools]:
    """Yield the tools, which are served during the block."""
    tools = Tools()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        tools.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        app = tools.server.streamable_http_app()
        web = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1))
        thread = Thread(target=web.run, args=([listener],), daemon=True)
        thread.start()
        ends_at = time.monotonic() + START_SECONDS
        while not web.started and time.monotonic() < ends_at:
            time.sleep(0.01)
        try:
            yield tools
        finally:
            web.should_exit = True
            thread.join(START_SECONDS)
