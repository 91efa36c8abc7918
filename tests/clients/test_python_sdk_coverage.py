"""Every public method of the Python SDK's clients is called by a test or listed as unsupported.

A new SDK version with a new method fails here until the compatibility table lists it.
"""

import ast
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
from conductor.client.automator.task_handler import TaskHandler
from conductor.client.event.event_client import EventClient
from conductor.client.orkes.orkes_agent_client import OrkesAgentClient
from conductor.client.orkes.orkes_authorization_client import OrkesAuthorizationClient
from conductor.client.orkes.orkes_integration_client import OrkesIntegrationClient
from conductor.client.orkes.orkes_metadata_client import OrkesMetadataClient
from conductor.client.orkes.orkes_prompt_client import OrkesPromptClient
from conductor.client.orkes.orkes_scheduler_client import OrkesSchedulerClient
from conductor.client.orkes.orkes_schema_client import OrkesSchemaClient
from conductor.client.orkes.orkes_secret_client import OrkesSecretClient
from conductor.client.orkes.orkes_service_registry_client import OrkesServiceRegistryClient
from conductor.client.orkes.orkes_task_client import OrkesTaskClient
from conductor.client.orkes.orkes_workflow_client import OrkesWorkflowClient
from conductor.client.orkes_clients import OrkesClients
from conductor.client.workflow.executor.workflow_executor import WorkflowExecutor

from . import sdk_table

CLIENTS = (
    EventClient,
    OrkesAgentClient,
    OrkesAuthorizationClient,
    OrkesIntegrationClient,
    OrkesMetadataClient,
    OrkesPromptClient,
    OrkesSchedulerClient,
    OrkesSchemaClient,
    OrkesSecretClient,
    OrkesServiceRegistryClient,
    OrkesTaskClient,
    OrkesWorkflowClient,
    TaskHandler,
    WorkflowExecutor,
)
FACTS = sdk_table.read_results("python")


def methods(client: type) -> set[str]:
    """Return a client's public methods."""
    return {name for name in dir(client) if not name.startswith("_") and callable(getattr(client, name))}


@cache
def called(*files: str) -> set[str]:
    """Return the names of all methods that these files call; by default all modules of this folder."""
    paths = map(Path(__file__).with_name, files) if files else Path(__file__).parent.glob("*.py")
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in paths)
    calls = (node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {function.attr for function in calls if isinstance(function, ast.Attribute)}


def test_every_method_has_a_result():
    offered = {f"{client.__name__}.{name}" for client in CLIENTS for name in methods(client)}

    assert set(FACTS["methods"]) == offered


def test_every_supported_method_is_called_by_a_test():
    working = sdk_table.methods_of("python", sdk_table.WORKS, sdk_table.DIFFERS)

    assert [name for name in working if name.partition(".")[2] not in called()] == []


def test_the_executor_has_a_test_that_calls_every_method_of_it():
    # Its methods bear the names of other clients' methods: calls of those do not count.
    assert methods(WorkflowExecutor) - called("test_python_executor.py") == set()


def test_every_client_of_the_sdk_is_in_the_table(configuration):
    factories = [name for name in methods(OrkesClients) if name.startswith("get_") and name.endswith("_client")]

    offered = {type(getattr(OrkesClients(configuration), name)()) for name in factories}

    assert offered <= set(CLIENTS)


def test_the_table_describes_the_installed_version():
    assert version(FACTS["package"]) == FACTS["version"]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_client_that_is_not_of_agents_is_called(client):
    entries = [entry for name, entry in FACTS["methods"].items() if name.startswith(f"{client.__name__}.")]
    is_of_agents = all(entry["note"].startswith(sdk_table.AI) for entry in entries)

    assert is_of_agents == (client is OrkesAgentClient)
