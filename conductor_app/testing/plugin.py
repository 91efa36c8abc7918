"""The pytest plugin: a server for each test that asks for one, and a folder of definitions.

Nothing of Django or of the SDK is loaded before a test uses the fixture.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .server import Server
    from .server_host import ServerHost

DEFINITIONS = "conductor_definitions"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the configuration file."""
    parser.addini(DEFINITIONS, "Folders or files with the definitions of each conductor_server.", "paths")


@pytest.fixture(scope="session")
def conductor_environment() -> Mapping[str, str]:
    """Return the environment variables that configure the servers. Override it to set some, such as RETENTION_DAYS."""
    return {}


@pytest.fixture(scope="session")
def conductor_host(
    conductor_environment: Mapping[str, str], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[ServerHost]":
    """Return the process from which the servers are started."""
    from .server_host import ServerHost

    folder = tmp_path_factory.mktemp("conductor")
    cache = getattr(request.config, "cache", None)
    templates = Path(cache.mkdir("conductor-app")) if cache else folder / "templates"
    host = ServerHost(folder, templates, conductor_environment)
    yield host
    host.stop()


@pytest.fixture
def conductor_server(
    conductor_host: "ServerHost",
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> "Iterator[Server]":
    """Return a server of this test alone, with the definitions of the option conductor_definitions.

    CONDUCTOR_SERVER_URL is its address during the test.
    """
    from .server import Server

    server = Server(conductor_host.start_server(tmp_path_factory.mktemp("conductor-server")))
    try:
        monkeypatch.setenv("CONDUCTOR_SERVER_URL", f"{server.url}/api")
        for name in ("CONDUCTOR_AUTH_KEY", "CONDUCTOR_AUTH_SECRET", "CONDUCTOR_AUTH_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        for folder in request.config.getini(DEFINITIONS):
            server.load(folder)
        yield server
    finally:
        server.close()
