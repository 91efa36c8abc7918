"""The built-in workers of AI tasks. The libraries of providers are imported at the first task."""

from conductor_app.workers.ai.chat_tasks import ChatComplete, TextComplete
from conductor_app.workers.ai.embeddings import GenerateEmbeddings
from conductor_app.workers.ai.mcp_tasks import CallMcpTool, ListMcpTools
from conductor_app.workers.ai.vectors import VECTOR_WORKERS

AI_WORKERS = (TextComplete(), ChatComplete(), GenerateEmbeddings(), ListMcpTools(), CallMcpTool(), *VECTOR_WORKERS)
