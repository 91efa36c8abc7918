"""LIST_MCP_TOOLS and CALL_MCP_TOOL tasks at a real MCP server."""

import socket
from contextlib import contextmanager
from threading import Thread
from time import sleep

import mcp_types
import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp.server.mcpserver.exceptions import ToolError

from conductor_app.ai.commands.integrations import save_integration
from conductor_app.ai.workers import messages as provider_errors
from tests.ai.conftest import ai_step, work
from tests.recording_web_server import json_answer

pytestmark = pytest.mark.django_db


def shop() -> MCPServer:
    """Return an MCP server with tools."""
    server = MCPServer("shop")

    @server.tool()
    def price(item: str, count: int = 1) -> dict[str, float]:
        """Return the price of an item."""
        return {"total": 2.5 * count, "items": float(len(item))}

    @server.tool()
    def broken() -> str:
        """Fail."""
        raise ToolError("out of stock")

    return server


@contextmanager
def running_mcp_server(app):
    """Yield the URL of an application on a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        web = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1))
        thread = Thread(target=web.run, args=([listener],), daemon=True)
        thread.start()
        while not web.started:
            sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        web.should_exit = True
        thread.join()


@pytest.fixture(scope="module", params=["event stream", "json"])
def mcp(request):
    """Return the URL of an MCP server that replies in this format."""
    with running_mcp_server(shop().streamable_http_app(json_response=request.param == "json")) as url:
        yield url


def test_the_tools_of_a_server_are_listed(mcp, run):
    scenario = run(ai_step("LIST_MCP_TOOLS", mcpServer=mcp))

    price, broken = scenario.output["tools"]
    assert (price["name"], price["description"]) == ("price", "Return the price of an item.")
    assert price["inputSchema"]["required"] == ["item"]
    assert broken["name"] == "broken"


def test_the_result_of_a_tool_is_text_with_its_json_value_and_structured_content(mcp, run):
    scenario = run(ai_step("CALL_MCP_TOOL", mcpServer=mcp, method="price", arguments={"item": "pen", "count": 2}))

    assert scenario.output["isError"] is False
    [content] = scenario.output["content"]
    assert (content["type"], content["parsed"]) == ("text", {"total": 5.0, "items": 3.0})
    assert scenario.output["structuredContent"] == {"total": 5.0, "items": 3.0}


def test_arguments_may_stand_beside_the_method(mcp, run):
    scenario = run(ai_step("CALL_MCP_TOOL", mcpServer=mcp, method="price", item="pen"))

    assert scenario.output["structuredContent"]["total"] == 2.5


def test_a_tool_that_fails_completes_the_task_with_the_error(mcp, run):
    scenario = run(ai_step("CALL_MCP_TOOL", mcpServer=mcp, method="broken"))

    assert (scenario.status, scenario.output["isError"]) == ("COMPLETED", True)
    assert "out of stock" in scenario.output["content"][0]["text"]


def test_a_private_address_is_refused(mcp, run, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ()

    attempt = run(ai_step("LIST_MCP_TOOLS", mcpServer=mcp)).task("ask")

    assert attempt.status == "FAILED_FOR_GOOD"
    assert "127.0.0.1 is not a public address" in attempt.reason


def test_pages_of_tools_without_end_are_larger_than_a_reply_may_be(run, monkeypatch):
    monkeypatch.setattr(provider_errors, "MAX_REPLY_BYTES", 100_000)

    async def list_page(context, params):
        tool = mcp_types.Tool(name="x", description="x" * 60_000, input_schema={"type": "object"})
        return mcp_types.ListToolsResult(tools=[tool], next_cursor="more")

    endless = Server("endless", on_list_tools=list_page)
    with running_mcp_server(endless.streamable_http_app(json_response=True)) as url:
        attempt = run(ai_step("LIST_MCP_TOOLS", mcpServer=url)).task("ask")

    assert attempt.status == "FAILED_FOR_GOOD"
    assert attempt.reason.endswith("the list of tools is larger than 100000 bytes")


def test_a_status_that_reports_an_error_is_retried(server, run):
    server.answers["/mcp"] = json_answer({}, 503)

    scenario = run(ai_step("LIST_MCP_TOOLS", mcpServer=f"{server.url}/mcp?token=confidential"))

    reason = scenario.task("ask").reason
    assert reason == f"Failed to list MCP tools from {server.url}/mcp: the server replied with status 503"
    scenario.later(2)
    assert work() == 1


def test_headers_are_sent_with_secrets_filled_in(server, run, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_MCP", "tops3cret")
    server.answers["/mcp"] = json_answer({}, 401)

    run(
        ai_step(
            "CALL_MCP_TOOL",
            mcpServer=f"{server.url}/mcp",
            method="price",
            headers={"Authorization": "Bearer ${workflow.secrets.MCP}"},
        )
    )

    assert server.asked[0]["headers"]["Authorization"] == "Bearer tops3cret"


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"mcpServer": "stdio:thing", "method": "x"}, "mcpServer must be an http(s) URL"),
        (
            {"mcpServer": "http://127.0.0.1/", "method": "x", "headers": {"a": "b\r\nc: d"}},
            "headers must not contain line breaks",
        ),
        ({"mcpServer": "http://127.0.0.1/", "method": "x", "arguments": [1]}, "arguments must be an object, not [1]"),
    ],
)
def test_an_invalid_input_ends_the_task(run, inputs, reason):
    attempt = run(ai_step("CALL_MCP_TOOL", **inputs)).task("ask")

    assert (attempt.status, attempt.reason) == ("FAILED_FOR_GOOD", f"Non-retryable error: {reason}")


def test_a_server_that_cannot_be_reached_fails_the_task(run):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"

        attempt = run({**ai_step("LIST_MCP_TOOLS", mcpServer=url), "retryCount": 0}).task("ask")

    assert attempt.status == "FAILED"
    assert "no connection to the server" in attempt.reason


def test_a_step_may_name_an_integration_instead_of_the_address(server, run):
    configuration = {"url": f"{server.url}/mcp", "authorization": "Bearer tops3cret"}
    save_integration("tools", {"type": "mcp", "configuration": configuration}, "olga")
    server.answers["/mcp"] = json_answer({"error": "tops3cret"}, 401)

    attempt = run(ai_step("LIST_MCP_TOOLS", mcpServer="tools")).task("ask")

    assert server.asked[0]["headers"]["Authorization"] == "Bearer tops3cret"
    assert "replied with status 401" in attempt.reason and "tops3cret" not in attempt.reason


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [("tols", "mcp", "There is no integration named 'tols'"), ("docs", "pgvectordb", "of the category VECTOR_DB")],
)
def test_a_step_that_names_no_mcp_server_ends_the_task(run, name, kind, reason):
    save_integration("docs", {"type": kind, "configuration": {"url": "https://example.org"}}, "olga")

    attempt = run(ai_step("LIST_MCP_TOOLS", mcpServer=name)).task("ask")

    assert attempt.status == "FAILED_FOR_GOOD" and reason in attempt.reason


def test_a_secret_cannot_stand_for_the_name_of_an_integration(server, run, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_NAME", "tools")
    save_integration("tools", {"type": "mcp", "configuration": {"url": f"{server.url}/mcp"}}, "olga")

    attempt = run(ai_step("LIST_MCP_TOOLS", mcpServer="${workflow.secrets.NAME}")).task("ask")

    assert attempt.reason == "Non-retryable error: mcpServer must be an http(s) URL" and server.asked == []
