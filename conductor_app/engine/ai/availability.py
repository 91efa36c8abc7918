"""Whether this server executes AI tasks."""

from importlib.util import find_spec

from ... import conf

PACKAGES = ("openai", "anthropic", "mcp")
"""Packages of the extra `ai`, without which no AI task can be executed."""


def executes_ai_tasks() -> bool:
    """Return True if the setting AI_TASKS is on and the extra `ai` is installed.

    Otherwise the types of AI tasks are ordinary task types, for which workers can poll.
    """
    return conf.ai_tasks and all(find_spec(package) for package in PACKAGES)
