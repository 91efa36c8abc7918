"""The official Python SDK's clients, and a server for them."""

from pathlib import Path

import pytest
from conductor.client.configuration.configuration import Configuration
from conductor.client.metadata_client import MetadataClient
from conductor.client.orkes_clients import OrkesClients
from conductor.client.task_client import TaskClient
from conductor.client.workflow.executor.workflow_executor import WorkflowExecutor

from tests.clients.live_server import running_server
from tests.clients.reply_documents import reply_folder  # noqa: F401
from tests.clients.shop_workflow import Shop


@pytest.fixture(autouse=True)
def no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip loading of certificate authorities: no test uses TLS, and each SDK client would load all of them."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))


@pytest.fixture
def server(transactional_db) -> str:
    """Return the URL of a live server."""
    with running_server() as url:
        yield url


@pytest.fixture
def configuration(server: str, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    """Return the SDK's configuration for the server, without a key."""
    for name in ("CONDUCTOR_AUTH_KEY", "CONDUCTOR_AUTH_SECRET"):
        monkeypatch.delenv(name, raising=False)
    return Configuration(server_api_url=f"{server}/api", log_level="CRITICAL")


@pytest.fixture
def clients(configuration: Configuration) -> OrkesClients:
    return OrkesClients(configuration)


@pytest.fixture
def workflows(clients: OrkesClients):
    """Return the SDK's workflow client."""
    return clients.get_workflow_client()


@pytest.fixture
def tasks(clients: OrkesClients) -> TaskClient:
    return clients.get_task_client()


@pytest.fixture
def metadata(clients: OrkesClients) -> MetadataClient:
    return clients.get_metadata_client()


@pytest.fixture
def executor(clients: OrkesClients) -> WorkflowExecutor:
    return clients.get_workflow_executor()


@pytest.fixture
def shop(clients: OrkesClients) -> Shop:
    """Return helpers for common setups."""
    return Shop(clients)
