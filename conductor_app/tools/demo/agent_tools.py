"""The tools of the demo's agent: an MCP server with two tools."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from mcp.server import MCPServer

START_SECONDS = 10.0
AMOUNT = 42.0


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
