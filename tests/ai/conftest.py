"""Servers of models, and runs with AI tasks.

Statement counts of pages.
"""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.system_tasks.registry import run_built_in_workers, slow_queues
from tests.recording_web_server import running_web_server
from tests.scenario import Scenario, run_commit_hooks


@pytest.fixture
def statements_of(clock) -> Callable[[Callable[[], object]], int]:
    """Return a function that counts the statements of a call. The first call fills the caches."""

    def count(call: Callable[[], object]) -> int:
        call()
        with CaptureQueriesContext(connection) as captured:
            call()
        return len(captured)

    return count


@pytest.fixture
def server(settings):
    """Return a server of models, to which the integrations `openai` and `anthropic` lead."""
    with running_web_server() as server:
        settings.CONDUCTOR_AI_OPENAI_API_KEY = "sk-the-key-of-openai"
        settings.CONDUCTOR_AI_OPENAI_BASE_URL = f"{server.url}/v1"
        settings.CONDUCTOR_AI_ANTHROPIC_API_KEY = "sk-the-key-of-anthropic"
        settings.CONDUCTOR_AI_ANTHROPIC_BASE_URL = server.url
        yield server


@pytest.fixture
def run(clock):
    """Return a function that runs a workflow with AI tasks until its workers have nothing to do."""

    def start(*steps, **fields) -> Scenario:
        scenario = Scenario(clock, *steps, **fields)
        work()
        return scenario

    return start


def work() -> int:
    """Execute the AI tasks that are due. Returns their number."""
    with run_commit_hooks():
        return run_built_in_workers(queues=slow_queues())


def ai_step(type: str, ref: str = "ask", *, provider: str = "openai", **inputs):
    """Return a step of an AI type."""
    named = {"llmProvider": provider, "model": "small"} if type.startswith("LLM_") else {}
    return {"name": ref, "taskReferenceName": ref, "type": type, "inputParameters": {**named, **inputs}}


def chat(ref: str = "ask", **inputs):
    """Return a chat step."""
    return ai_step("LLM_CHAT_COMPLETE", ref, **inputs)
