"""LIST_MCP_TOOLS: lists the tools of an MCP server."""

from .ai_task import AiTask


class ListMcpToolsStep(AiTask):
    """Executed by a built-in worker."""

    type = "LIST_MCP_TOOLS"
    icon = "http"
    required_inputs = ("mcpServer",)
    output_members = {"tools": None}
