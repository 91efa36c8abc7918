"""Sessions with MCP servers over streamable HTTP, with the official client library."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from ...system_tasks.cancellation import CANCELED, current_cancellation
from . import messages
from .guarded_http import guarded_async_client
from .messages import CallFailed, connection_failure, status_failure


def with_server(
    url: str, headers: dict[str, str], seconds: float, work: Callable[[Client], Awaitable[dict[str, Any]]]
) -> dict[str, Any]:
    """Return the result of `work` in a session with the server, which takes at most `seconds`.

    Raises:
        CallFailed: when the server cannot be reached or replies with an error, or the task is canceled.
    """
    seen: list[httpx2.Response | Exception] = []

    async def run() -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        with (
            anyio.fail_after(seconds) as scope,
            current_cancellation().stopping_by(partial(loop.call_soon_threadsafe, scope.cancel)),
        ):
            async with guarded_async_client(seconds, headers) as http:
                http.event_hooks = {"response": [_recorder(seen)]}
                transport = streamable_http_client(url, http_client=http, max_sse_event_size=messages.MAX_REPLY_BYTES)
                async with Client(transport, read_timeout_seconds=seconds) as client:
                    return await work(client)
        raise CallFailed(CANCELED)

    try:
        return anyio.run(run)
    except Exception as error:
        raise _failure(error, seen, seconds) from error


MAX_PAGES = 100


async def list_tools(client: Client) -> dict[str, Any]:
    """Return the tools of all pages, which together have the size of one reply at most."""
    tools: list[dict[str, Any]] = []
    size = 0
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            found = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            shown = {"name": found["name"], "description": found.get("description", "")}
            tools.append(shown | {name: found[name] for name in ("inputSchema", "outputSchema") if name in found})
            size += len(json.dumps(tools[-1]))
        if size > messages.MAX_REPLY_BYTES:
            raise CallFailed(f"the list of tools is larger than {messages.MAX_REPLY_BYTES} bytes", is_final=True)
        cursor = page.next_cursor
        if not cursor:
            return {"tools": tools}
    raise CallFailed(f"the list has more than {MAX_PAGES} pages", is_final=True)


def _recorder(seen: list[Any]) -> Callable[[httpx2.Response], Awaitable[None]]:
    async def record(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            seen.append(response)

    return record


def _failure(error: BaseException, seen: list[Any], seconds: float) -> CallFailed:
    """Return the failure for an error of a session. Errors of its concurrent tasks are in groups."""
    for each in _leaves(error):
        if isinstance(each, CallFailed):
            return each
        if isinstance(each, MCPError) and not seen:
            return CallFailed(each.error.message[:1000])
    if seen:
        return status_failure("the server", seen[-1].status_code, seen[-1].headers, None)
    return connection_failure("the server", next(_leaves(error)), seconds)


def _leaves(error: BaseException) -> Any:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
