"""A real `manage.py serve` with its child processes, for tests of its behavior on a terminal."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import psutil

from tests.free_port import free_port

ROOT = Path(__file__).parents[2]


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for something outside of this process to come true."""
    gives_up_at = monotonic() + seconds
    while not condition():
        assert monotonic() < gives_up_at, f"not true after {seconds} s"
        sleep(0.02)


class Server:
    """One start of the server in a folder, with the code of this project or of another version in `root`."""

    def __init__(self, folder: Path, root: Path = ROOT, **variables: str) -> None:
        self.port = free_port()
        self.said = folder / f"said.{uuid4()}"
        bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=root,
            env=bare | {"VAR_DIR": str(folder / "var"), "PORT": str(self.port)} | variables,
            stdout=self.said.open("w"),
            stderr=subprocess.STDOUT,
        )
        self.family: list[psutil.Process] = []

    def words(self) -> str:
        return self.said.read_text()

    def is_up(self) -> bool:
        assert self.process.poll() is None, self.words()
        return "Stop with Ctrl-C" in self.words()

    def wait_until_up(self) -> "Server":
        wait_until(self.is_up, seconds=60)
        parent = psutil.Process(self.process.pid)
        self.family = [parent, *parent.children(recursive=True)]
        return self

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def child(self, name: str) -> psutil.Process:
        """Return the child process with this name."""
        return next(child for child in self.children() if child.name() == f"serve: {name}")

    def is_gone(self) -> bool:
        """Return whether none of its processes runs."""
        self.process.poll()
        return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in self.family)

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Stop the server and wait for its end."""
        self.process.send_signal(how)
        self.process.wait(60)
