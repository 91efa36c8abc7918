"""The tools of agents, called by the official client of the Model Context Protocol over HTTP."""

import base64
from collections.abc import Awaitable, Callable, Iterator
from threading import Event, Thread
from typing import Any

import anyio
import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from conductor_app.access.commands.applications import create_key_of
from conductor_app.access.models import AuditEntry
from conductor_app.agents.protocol import ReplyStream
from conductor_app.agents.tools import TOOLS
from tests.api_fixtures import Api
from tests.builders import simple
from tests.clients.live_server import running_server


@pytest.fixture
def server(transactional_db) -> Iterator[str]:
    """Yield the address of a live server."""
    with running_server() as url:
        yield url


def talk(server: str, conversation: Callable[[ClientSession], Awaitable[Any]], **headers: str) -> Any:
    """Initialize a session of the official client, and return what the conversation returns."""

    async def run() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            streamable_http_client(f"{server}/mcp", http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            return await conversation(session)

    return anyio.run(run)


def call(server: str, tool: str, headers: dict[str, str] | None = None, /, **arguments: Any) -> Any:
    return talk(server, lambda session: session.call_tool(tool, arguments), **(headers or {}))


def failed_run() -> str:
    api = Api()
    api.define(simple("ship"))
    run = api.start()
    api.report(api.poll("ship")[0], "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion="no such address")
    return run


def test_the_client_lists_the_tools_with_their_schemas(server):
    found = talk(server, lambda session: session.list_tools()).tools

    assert [tool.name for tool in found] == [tool.name for tool in TOOLS]
    acting = {tool.name for tool in found if not tool.annotations.read_only_hint}
    assert acting == {"apply_plan", "save_workflow_draft", "start_workflow"}
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in found)


def test_an_agent_finds_and_explains_a_failed_run(server):
    run = failed_run()

    found = call(server, "search_runs", status="FAILED", workflow="order").structured_content
    cause = call(server, "explain_run", workflowId=run).structured_content

    assert [each["workflowId"] for each in found["results"]] == [run]
    assert "no such address" in cause["sentence"]


def test_an_agent_plans_and_applies_a_retry_with_a_reason_in_the_audit_log(server):
    run = failed_run()

    plan = call(server, "plan_operation", workflowId=run, operation="retry").structured_content
    assert Api().workflow(run)["status"] == "FAILED"
    token = plan["confirmationToken"]
    done = call(server, "apply_plan", workflowId=run, confirmationToken=token, reason="Ada confirmed it")

    assert not done.is_error
    assert Api().workflow(run)["status"] == "RUNNING"
    assert AuditEntry.objects.filter(object_id=run, reason="Ada confirmed it").exists()


def test_an_agent_plans_a_rewind(server):
    run = failed_run()
    task = Api().workflow(run)["tasks"][0]["taskId"]

    plan = call(server, "plan_operation", workflowId=run, operation="rewind", taskId=task).structured_content

    assert plan["operation"] == "rewind"
    assert plan["confirmationToken"]


def test_every_reading_tool_answers(server):
    run = failed_run()
    task = Api().workflow(run)["tasks"][0]["taskId"]
    other = Api().start()
    tools: dict[str, dict[str, Any]] = {
        "get_run": {"workflowId": run},
        "compare_runs": {"workflowId": run, "with": other},
        "explain_input": {"taskId": task},
        "get_task_log": {"taskId": task},
        "list_queues": {},
        "explain_queue": {"queue": "ship"},
        "list_failures": {"view": "all"},
        "list_workflow_definitions": {},
        "get_workflow_definition": {"name": "order", "version": 1},
    }

    async def call_all(session: ClientSession) -> list[Any]:
        return [await session.call_tool(name, arguments) for name, arguments in tools.items()]

    for result in talk(server, call_all):
        assert not result.is_error, result.content
        assert result.structured_content is not None


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("explain_run", {"workflowId": "no-run"}, "No such workflow found by id: no-run"),
        ("explain_run", {}, "workflowId"),
        ("explain_run", {"workflowId": "a", "more": 1}, "more"),
        ("drop_tables", {}, "There is no tool 'drop_tables'"),
        ("apply_plan", {"workflowId": "a/../b", "confirmationToken": "x", "reason": "y"}, "invalid"),
        ("search_runs", {"query": "status ="}, "Invalid query"),
    ],
)
def test_a_refusal_is_a_result_that_the_model_can_read(server, tool, arguments, message):
    result = call(server, tool, **arguments)

    assert result.is_error
    assert message in result.content[0].text


def test_an_agent_has_the_rights_of_its_caller(server, settings):
    settings.CONDUCTOR_API_ACCESS = "token"
    key = create_key_of("viewer", ("USER_READ_ONLY",), "tester")
    credentials = base64.b64encode(":".join(key).encode()).decode()
    headers = {"Authorization": f"Basic {credentials}"}

    names = [tool.name for tool in talk(server, lambda session: session.list_tools(), **headers).tools]
    refused = call(server, "apply_plan", headers, workflowId="a", confirmationToken="b", reason="c")
    planned = call(server, "plan_operation", headers, workflowId="a", operation="retry")

    assert "explain_run" in names
    assert "apply_plan" not in names
    assert "EXECUTE on AGENT" in refused.content[0].text
    assert planned.is_error


@pytest.mark.parametrize("header", [None, "Bearer nonsense", "Basic nonsense!", "Basic bm9uZTpub25l"])
def test_a_caller_without_valid_credentials_is_refused(client, db, settings, header):
    settings.CONDUCTOR_API_ACCESS = "token"
    headers = {"Authorization": header} if header else {}

    response = client.post("/mcp", "{}", "application/json", headers=headers)

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_pages_of_other_sites_cannot_call_tools(client, db):
    response = client.post("/mcp", "{}", "application/json", headers={"Origin": "https://evil.example"})

    assert response.status_code == 403


@pytest.mark.parametrize("body", ["nonsense", "[]", '{"jsonrpc": "2.0", "id": 1, "method": "no/such"}'])
def test_an_invalid_message_gets_an_error_of_the_protocol(client, db, body):
    accepted = {"Accept": "application/json, text/event-stream"}

    response = client.post("/mcp", body, "application/json", headers=accepted)

    assert response.status_code in (200, 400), response.content
    assert response.json()["error"]["code"] < 0, response.content


def test_other_methods_are_not_allowed(client, db):
    assert client.get("/mcp").status_code == 405


def test_a_stream_is_closed_without_waiting_for_its_event_loop():
    """An event loop that ends at this moment never replies, and the thread of the server would wait forever."""
    free, received = Event(), list[str]()

    class BusySession:
        async def exchange(self, receive: Any, send: Any, *, json_response: bool) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            free.wait()
            received.extend([(await receive())["type"], (await receive())["type"]])

    stream: Any = ReplyStream(BusySession(), b"", lambda: True)  # type: ignore[arg-type]
    closing = Thread(target=stream.close, daemon=True)
    closing.start()
    closing.join(5)
    has_closed = not closing.is_alive()
    free.set()

    assert has_closed
    assert list(stream) == []
    assert received == ["http.request", "http.disconnect"]
