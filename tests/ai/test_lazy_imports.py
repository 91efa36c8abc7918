"""A server without AI tasks in its runs does not load the libraries of providers."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

LIBRARIES = ("openai", "anthropic", "mcp", "numpy", "httpx2", "httpcore2")
SCRIPT = """
import sys
import django
django.setup()
import conductor_app.urls, conductor_app.processes.jobs, conductor_app.system_tasks.registry
from conductor_app.core.step_types import STEP_TYPES
print(sorted(name for name in {libraries} if name in sys.modules))
print("LLM_CHAT_COMPLETE" in STEP_TYPES, "LLM_CHAT_COMPLETE" in conductor_app.system_tasks.registry.slow_queues())
"""


def execute(**environment: str) -> list[str]:
    """Return the lines that a new process of the server prints."""
    settings = {"DJANGO_SETTINGS_MODULE": "conductor_app.settings.testing", **environment}
    script = SCRIPT.format(libraries=LIBRARIES)
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, check=True, timeout=120
    ).stdout.splitlines()


def test_a_process_does_not_import_the_libraries_before_the_first_task():
    assert execute() == ["[]", "True True"]


def test_a_server_that_does_not_execute_ai_tasks_leaves_them_to_workers():
    assert execute(AI_TASKS="off") == ["[]", "False False"]
