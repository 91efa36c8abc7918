"""Workflows as tools, called by the official client of the Model Context Protocol, in its two generations."""

import base64
from collections.abc import Awaitable, Callable, Iterator
from threading import Thread
from typing import Any

import anyio
import httpx2
import pytest
from django.db import connections
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client

from conductor_app.access.commands.applications import create_key_of
from conductor_app.access.models import Application
from conductor_app.access.permissions import EXECUTE, WORKFLOW_DEF
from conductor_app.agents.tools import TOOLS
from conductor_app.definitions.models import DefinitionDraft, WorkflowDefinition
from conductor_app.runs.models import Run
from tests.access.users import grant_access
from tests.api_fixtures import Api
from tests.builders import simple
from tests.clients.live_server import running_server
from tests.clients.wait_until import eventually
from tests.telemetry.test_spans import CALLER

INPUT = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
WAIT = {"name": "approve", "taskReferenceName": "approve", "type": "WAIT"}


@pytest.fixture
def server(transactional_db) -> Iterator[str]:
    """Yield the address of a live server."""
    with running_server() as url:
        yield url


@pytest.fixture(params=["handshake", "2026"])
def talk(request, server) -> Callable[..., Any]:
    """Return a function that returns what a conversation with a client of this generation returns."""

    def talk(conversation: Callable[[Any], Awaitable[Any]], **headers: str) -> Any:
        async def run() -> Any:
            async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
                transport = streamable_http_client(f"{server}/mcp", http_client=http)
                if request.param == "2026":
                    async with Client(transport, mode="2026-07-28") as client:
                        return await conversation(client)
                async with transport as streams, ClientSession(streams[0], streams[1]) as session:
                    await session.initialize()
                    return await conversation(session)

        return anyio.run(run)

    return talk


def define_tool(api: Api, *tasks: dict[str, Any], mcp: Any = True, **fields: Any) -> None:
    schema = {"name": "order", "version": 1, "type": "JSON", "data": INPUT}
    options = {"inputSchema": schema, "enforceSchema": True, "description": "Ship an order."}
    output = {"shipped": "${ship.output.number}"}
    api.define(*tasks or (simple("ship"),), metadata={"mcp": mcp}, outputParameters=output, **{**options, **fields})


def only_run() -> Run | None:
    try:
        return Run.objects.first()
    finally:
        connections.close_all()


def in_background(act: Callable[[], Any]) -> Thread:
    def run() -> None:
        act()
        connections.close_all()

    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


def ship() -> None:
    """Execute the task `ship` when it comes."""
    api = Api()
    [task] = eventually(lambda: api.poll("ship"))
    api.report(task, outputData={"number": 4711})


def test_a_workflow_is_listed_as_a_tool_with_the_schema_of_its_input(talk, api):
    define_tool(api, inputTemplate={"order": "of the author"})
    api.define(simple("ship"), name="hidden")

    tools = talk(lambda client: client.list_tools()).tools

    [tool] = [tool for tool in tools if tool.name not in {tool.name for tool in TOOLS}]
    assert (tool.name, tool.description) == ("order", "Ship an order.")
    assert tool.input_schema["properties"] == {"order": {"type": "string"}}
    assert tool.input_schema["required"] == ["order"]


def test_a_call_starts_a_run_in_the_trace_of_the_agent(talk, api):
    define_tool(api, mcp={"waitSeconds": 0})

    talk(lambda client: client.call_tool("order", {"order": "a"}), traceparent=CALLER)

    assert only_run().traceparent == CALLER


def test_a_call_waits_for_the_end_and_returns_the_output(talk, api):
    define_tool(api)
    worker = in_background(ship)

    result = talk(lambda client: client.call_tool("order", {"order": "a"}))
    worker.join(10)

    assert not result.is_error, result.content
    found = result.structured_content
    assert (found["status"], found["output"]) == ("COMPLETED", {"shipped": 4711})
    assert Run.objects.get(pk=found["workflowId"]).input == {"order": "a"}


def test_a_call_reports_its_progress(talk, api):
    define_tool(api, simple("pay"), simple("ship"))
    seen: list[tuple[float, str | None]] = []

    def work() -> None:
        eventually(lambda: seen)
        worker = Api()
        [task] = eventually(lambda: worker.poll("pay"))
        worker.report(task)
        eventually(lambda: len(seen) > 1)
        ship()

    async def show(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    worker = in_background(work)
    result = talk(lambda client: client.call_tool("order", {"order": "a"}, progress_callback=show))
    worker.join(10)

    assert result.structured_content["status"] == "COMPLETED"
    assert seen[0] == (0, "0 tasks ended; open: pay")
    assert (1, "1 tasks ended; open: ship") in seen


def test_the_cancellation_of_a_call_ends_the_run(talk, api):
    define_tool(api)

    async def cancel(client: Any) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "order", {"order": "a"})
            await anyio.to_thread.run_sync(lambda: eventually(only_run))
            tasks.cancel_scope.cancel()

    talk(cancel)

    run = eventually(lambda: Run.objects.filter(status="TERMINATED").first())
    assert run.reason == "The call of the tool was canceled."


def test_a_failed_run_is_an_error_with_its_reason(talk, api):
    define_tool(api)

    def fail() -> None:
        worker = Api()
        [task] = eventually(lambda: worker.poll("ship"))
        worker.report(task, "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion="no such address")

    worker = in_background(fail)
    result = talk(lambda client: client.call_tool("order", {"order": "a"}))
    worker.join(10)

    assert result.is_error
    assert "no such address" in result.content[0].text


def test_a_run_that_waits_for_a_person_returns_its_id_and_is_followed_later(talk, api):
    define_tool(api, WAIT)

    async def converse(client: Any) -> tuple[Any, Any]:
        begun = await client.call_tool("order", {"order": "a"})
        run = begun.structured_content["workflowId"]
        await anyio.to_thread.run_sync(
            lambda: (api.post(f"/tasks/{run}/COMPLETED/signal", {}), connections.close_all())
        )
        return begun, await client.call_tool("wait_for_run", {"workflowId": run})

    def signal(run: str) -> None:
        api.post(f"/tasks/{run}/COMPLETED/signal", {})
        connections.close_all()

    begun, ended = talk(converse)

    assert begun.structured_content["status"] == "RUNNING"
    assert "wait_for_run" in begun.structured_content["message"]
    assert ended.structured_content["status"] == "COMPLETED"


def test_a_tool_that_does_not_wait_returns_the_id_at_once(talk, api):
    define_tool(api, mcp={"name": "ship_order", "description": "Ship it.", "waitSeconds": 0})

    result = talk(lambda client: client.call_tool("ship_order", {"order": "a"}))

    assert result.structured_content["status"] == "RUNNING"
    assert Run.objects.filter(pk=result.structured_content["workflowId"]).exists()


def test_an_input_that_the_schema_refuses_starts_nothing(talk, api):
    define_tool(api)

    result = talk(lambda client: client.call_tool("order", {"order": 7}))

    assert result.is_error
    assert "order" in result.content[0].text
    assert not Run.objects.exists()


@pytest.mark.parametrize("mcp", [False, None, {"enabled": False}, "yes"], ids=str)
def test_a_workflow_without_the_switch_is_no_tool(talk, api, mcp):
    define_tool(api, mcp=mcp)

    result = talk(lambda client: client.call_tool("order", {"order": "a"}))

    assert result.is_error
    assert "There is no tool 'order'" in result.content[0].text


def test_a_tool_has_the_rights_of_its_caller(talk, api, settings):
    define_tool(api, mcp={"waitSeconds": 0})
    define_tool(api, name="secret")
    settings.CONDUCTOR_API_ACCESS = "token"
    key = create_key_of("assistant", (), "tester")
    grant_access(Application.objects.get(name="assistant"), WORKFLOW_DEF, "order", EXECUTE)
    headers = {"Authorization": "Basic " + base64.b64encode(":".join(key).encode()).decode()}

    async def converse(client: Any) -> tuple[list[str], Any, Any, Any]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool("secret", {"order": "a"})
        general = await client.call_tool("start_workflow", {"name": "order"})
        return names, refused, general, await client.call_tool("order", {"order": "a"})

    names, refused, general, started = talk(converse, **headers)

    assert "order" in names
    assert not {"secret", "start_workflow", "save_workflow_draft"} & set(names)
    assert "There is no tool 'secret'" in refused.content[0].text
    assert "EXECUTE on AGENT" in general.content[0].text
    assert list(Run.objects.values_list("name", "started_by")) == [("order", "assistant")]
    assert not started.is_error, started.content


def test_a_workflow_is_started_by_its_name_and_followed(talk, api):
    api.define(simple("ship"), outputParameters={"shipped": "${ship.output.number}"})
    worker = in_background(ship)

    result = talk(lambda client: client.call_tool("start_workflow", {"name": "order", "waitSeconds": 60}))
    worker.join(10)

    assert result.structured_content["output"] == {"shipped": 4711}


def test_a_definition_is_validated_tested_and_kept_as_a_draft(talk, api):
    definition = {"name": "order", "version": 1, "tasks": [simple("ship")], "schemaVersion": 2}

    async def converse(client: Any) -> tuple[Any, Any, Any]:
        return (
            await client.call_tool("validate_workflow_definition", {"definition": {**definition, "tasks": []}}),
            await client.call_tool(
                "test_workflow_definition",
                {"definition": definition, "results": {"ship": [{"status": "COMPLETED", "output": {"number": 4711}}]}},
            ),
            await client.call_tool("save_workflow_draft", {"definition": definition}),
        )

    invalid, tested, draft = talk(converse)

    assert invalid.is_error
    assert "tasks" in invalid.content[0].text
    assert tested.structured_content["status"] == "COMPLETED"
    assert DefinitionDraft.objects.get().name == "order"
    assert draft.structured_content["editor"].endswith(
        "add/?draft=" + DefinitionDraft.objects.get().author + "&name=order"
    )
    assert not WorkflowDefinition.objects.exists()
