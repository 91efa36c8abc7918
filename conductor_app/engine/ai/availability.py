"""Whether this server executes AI tasks."""

from importlib.util import find_spec

from ... import conf

PACKAGES = ("openai", "anthropic", "httpx2", "httpcore2", "mcp", "numpy")
"""Packages of the extra `ai`. If one is missing, the server executes no AI task."""


def executes_ai_tasks() -> bool:
    """Return True if the setting AI_TASKS is on and the extra `ai` is installed.

    Otherwise the types of AI tasks are ordinary task types, for which workers can poll.
    """
    return conf.ai_tasks and all(find_spec(package) for package in PACKAGES)
