"""A real conductor-oss server on SQLite, if its jar and a JDK are on this machine. Nothing is downloaded."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from qa.bench.conductor_oss import find_java, jar_path
from qa.bench.servers import NotAvailable
from qa.faults.backends import wait_until
from qa.faults.processes import Member
from tests.free_port import free_port

from .source_objects import SECRETS, VARIABLES

START_SECONDS = 180
SWITCH = "CONDUCTOR_OSS"


def require_conductor_oss() -> tuple[str, Path]:
    """Return the paths of Java and of the server's jar, or skip the test with the reason."""
    if not os.environ.get(SWITCH):
        pytest.skip("The real server starts in `make test-import` only, because it takes half a minute.")
    try:
        java = find_java()
    except NotAvailable as error:
        pytest.skip(str(error))
    jar = jar_path()
    if not jar.is_file():
        pytest.skip(f"{jar} is missing. `make bench PEERS=1` downloads it, or set CONDUCTOR_OSS_JAR to the jar.")
    return java, jar


@contextmanager
def running_conductor_oss(java: str, jar: Path, folder: Path) -> Iterator[str]:
    """Yield the address of the API of a server that runs during the block."""
    port = free_port()
    settings = {
        "server.port": port,
        "conductor.db.type": "sqlite",
        "conductor.queue.type": "sqlite",
        "spring.datasource.url": f"jdbc:sqlite:{folder}/conductor.db?busy_timeout=15000&journal_mode=WAL",
        "conductor.indexing.enabled": "true",
        "conductor.indexing.type": "sqlite",
        "conductor.elasticsearch.version": 0,
        "conductor.integrations.ai.enabled": "false",
        "conductor.grpc-server.enabled": "false",
        "logging.level.root": "WARN",
    }
    command = [java, "-Xmx1g", "-jar", str(jar), *(f"--{name}={value}" for name, value in settings.items())]
    server = Member("conductor-oss", command, {**os.environ, **SECRETS, **VARIABLES}, folder / "conductor-oss.log")
    server.start()
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: not server.is_alive or _is_healthy(url), START_SECONDS, "conductor-oss")
        assert server.is_alive, (folder / "conductor-oss.log").read_text(errors="replace")[-2000:]
        yield f"{url}/api"
    finally:
        server.terminate()


def _is_healthy(url: str) -> bool:
    try:
        return requests.get(f"{url}/health", timeout=5).ok
    except requests.RequestException:
        return False
