"""CALL_MCP_TOOL: calls a tool of an MCP server."""

from .ai_task import AiTask


class CallMcpToolStep(AiTask):
    """Executed by a built-in worker."""

    type = "CALL_MCP_TOOL"
    icon = "http"
    needed_inputs = ("mcpServer", "method")
    output_members = {"content": None, "isError": None, "structuredContent": None}
