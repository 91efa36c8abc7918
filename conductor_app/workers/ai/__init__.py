"""The built-in workers of AI tasks. The libraries of providers are imported at the first task."""

from conductor_app.workers.ai.vectors import VECTOR_WORKERS

AI_WORKERS = VECTOR_WORKERS
