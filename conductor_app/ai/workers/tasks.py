"""Tasks that get answers of models, and tasks of MCP servers, with one connection per task."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...core.definition import MCP_INPUT, is_integration_name
from ...core.errors import RequestRefused
from ...core.expressions import field_text
from ...core.step_types.ai import CallMcpToolStep, ListMcpToolsStep, LlmChatComplete, LlmTextComplete
from ...settings import conf
from ...system_tasks.registry import BuiltInWorker, Status, WorkResult
from ...tasks.commands.pollers import release_connection
from ...tasks.store import ClaimedAttempt
from ..commands.calls import Usage
from ..commands.integrations import ModelSettings
from . import messages
from .calls import ModelWorker, StreamedLog, estimate_chat, named_prompt, paid_call, renewed_lease
from .messages import (
    AnswerRefused,
    CallFailed,
    ChatReply,
    ChatRequest,
    InputRejected,
    as_text,
    mapping,
    output_of,
    parse_nested,
    read_chat,
    read_text,
)
from .trials import complete, headers_of_server, server_settings

if TYPE_CHECKING:
    from mcp import Client

OWN_INPUTS = frozenset(
    {
        *("mcpServer", "method", "headers", "arguments", "asyncComplete", "llmProvider", "model", "integrationName"),
        *("integrationNames", "prompt", "promptVersion", "promptVariables", "service", "type"),
    }
)
"""Inputs that are not arguments of the tool when its arguments stand beside `method`."""


class CompletionWorker(ModelWorker):
    """A worker whose tasks get an answer to messages."""

    prompt_inputs: tuple[str, ...]
    """The inputs that have the prompt or its name, the first of which that is set is used."""
    read_request: Callable[[dict[str, Any], str], ChatRequest]

    def call(self, attempt: ClaimedAttempt, inputs: dict[str, Any], settings: ModelSettings) -> WorkResult:
        """Send the messages and return the answer as the output of the task."""
        name = next((name for name in self.prompt_inputs if inputs.get(name) not in (None, "")), "")
        given = inputs.get(name)
        if isinstance(given, str) and attempt.input.get(name) == given:
            text, prompt = named_prompt(inputs, given, settings)
        else:
            # No permission was checked for a prompt that a secret or another value than a text would name.
            text, prompt = "" if given is None else as_text(given), ""
        request = type(self).read_request(inputs, text)
        progress = StreamedLog(attempt)

        def send(key: str) -> tuple[dict[str, Any], Usage]:
            try:
                reply = complete(settings, request, key, progress.add)
            finally:
                progress.write()
            return reply.as_document(), reply.usage

        content = [attempt.input, text if prompt else ""]
        reply = paid_call(attempt, settings, content, send, estimate_chat(request), prompt)
        try:
            return WorkResult("COMPLETED", output_of(ChatReply.from_document(reply), request))
        except AnswerRefused as refused:
            return WorkResult("FAILED", {}, f"Task execution failed: {refused}")


class ChatComplete(CompletionWorker):
    """Continues a conversation with a model."""

    type = LlmChatComplete.type
    prompt_inputs = ("instructions", "instructionsTemplate")
    read_request = staticmethod(read_chat)


class TextComplete(CompletionWorker):
    """Completes a prompt."""

    type = LlmTextComplete.type
    prompt_inputs = ("promptName", "prompt")
    read_request = staticmethod(read_text)


class McpWorker(BuiltInWorker):
    """A worker whose tasks send requests to an MCP server."""

    action: str
    """What the worker does, for the reason of a failure."""

    def work_on(self, attempt: ClaimedAttempt) -> WorkResult:
        """Execute the task while the lease of its attempt is renewed."""
        inputs, settings = self.inputs_of(attempt), None
        name = inputs.get(MCP_INPUT)
        # No permission was checked for a name that a secret stands for.
        if is_integration_name(name) and attempt.input.get(MCP_INPUT) == name:
            try:
                settings = server_settings(name)
            except RequestRefused as refused:
                return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, f"Non-retryable error: {refused.message}")
            inputs = _with_server_of(settings, inputs)
        release_connection()
        with renewed_lease(attempt):
            result = self.perform(inputs)
        return replace(result, reason=messages.without_keys(result.reason, settings)) if settings else result

    def perform(self, inputs: dict[str, Any]) -> WorkResult:
        """Send the requests. A failure is a result with a readable reason."""
        from .mcp_client import with_server

        try:
            url, headers = read_server(inputs)
            session = self.session(inputs)
            return WorkResult("COMPLETED", with_server(url, headers, conf.ai_task_seconds, session))
        except InputRejected as error:
            return WorkResult("FAILED_WITH_TERMINAL_ERROR", {}, f"Non-retryable error: {error}")
        except CallFailed as failure:
            named = self.action.format(inputs.get("method"), without_query(url))
            status: Status = "FAILED_WITH_TERMINAL_ERROR" if failure.is_final else "FAILED"
            return WorkResult(status, {}, f"{named}: {failure.reason}")

    def session(self, inputs: dict[str, Any]) -> Callable[["Client"], Awaitable[dict[str, Any]]]:
        """Return the function that sends the requests and returns the output of the task."""
        raise NotImplementedError


def _with_server_of(settings: ModelSettings, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs with the address and the headers of an integration."""
    given = inputs.get("headers")
    headers = {**given, **headers_of_server(settings)} if isinstance(given, Mapping) else headers_of_server(settings)
    return {**inputs, MCP_INPUT: settings.base_url, "headers": headers}


class ListMcpTools(McpWorker):
    """Lists the tools of a server."""

    type = ListMcpToolsStep.type
    action = "Failed to list MCP tools from {1}"

    def session(self, inputs: dict[str, Any]) -> Callable[["Client"], Awaitable[dict[str, Any]]]:
        """Return the function that reads the pages of the list."""
        from .mcp_client import list_tools

        return list_tools


class CallMcpTool(McpWorker):
    """Calls a tool of a server. A task may be repeated, and then the tool is called again."""

    type = CallMcpToolStep.type
    action = "Failed to call MCP tool '{0}' on {1}"

    def session(self, inputs: dict[str, Any]) -> Callable[["Client"], Awaitable[dict[str, Any]]]:
        """Return the function that calls the tool."""
        name = inputs.get("method")
        if not isinstance(name, str) or not name:
            raise InputRejected("method must be the name of a tool")
        arguments = tool_arguments(inputs)

        async def call(client: "Client") -> dict[str, Any]:
            result = await client.call_tool(name, arguments)
            found: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            output = {
                "content": [with_parsed_text(item) for item in found.get("content", ())],
                "isError": bool(found.get("isError")),
            }
            if "structuredContent" in found:
                output["structuredContent"] = found["structuredContent"]
            return output

        return call


TASK_WORKERS = (TextComplete(), ChatComplete(), ListMcpTools(), CallMcpTool())


def tool_arguments(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the tool: `arguments`, or the inputs beside `method`, as some clients send them."""
    if "arguments" in inputs:
        return dict(mapping(inputs, "arguments"))
    return {name: value for name, value in inputs.items() if name not in OWN_INPUTS}


def with_parsed_text(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of a result; a text has its JSON value as `parsed`, or the same text if it is not JSON."""
    return {**item, "parsed": parse_nested(item["text"])} if isinstance(item.get("text"), str) else item


def read_server(inputs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the address and the headers of the server."""
    url = inputs.get("mcpServer")
    try:
        parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_valid = False
    if not isinstance(url, str) or not is_valid:
        raise InputRejected("mcpServer must be an http(s) URL")
    headers = {name: field_text(value) for name, value in mapping(inputs, "headers").items()}
    if any(char in text for pair in headers.items() for text in pair for char in "\r\n\0"):
        raise InputRejected("headers must not contain line breaks")
    return url, headers


def without_query(url: str) -> str:
    """Return an address without what may be confidential in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
