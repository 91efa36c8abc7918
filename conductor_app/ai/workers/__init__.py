"""The built-in workers of AI tasks. The libraries of providers are imported at the first task."""

from conductor_app.ai.workers.tasks import CallMcpTool, ChatComplete, ListMcpTools, TextComplete
from conductor_app.ai.workers.vectors import VECTOR_WORKERS, GenerateEmbeddings

AI_WORKERS = (TextComplete(), ChatComplete(), GenerateEmbeddings(), ListMcpTools(), CallMcpTool(), *VECTOR_WORKERS)
