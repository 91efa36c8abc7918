"""The process from which the servers of a test run are forked, and the connection to each of them."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from ..settings.table import BY_VARIABLE

START_SECONDS = 120
"""The time in which the process must be ready, in seconds. The first start creates the database."""
LOG_BYTES = 4_000
"""The part of a log that an error shows."""
REMOVED_VARIABLES = ("DJANGO_SETTINGS_MODULE", "PROMETHEUS_MULTIPROC_DIR")
Document = dict[str, Any]


class TestKitError(Exception):
    """The test kit cannot do what the test asks for. The message says what to do."""

    __test__ = False


class ServerHost:
    """Starts servers. It loads Django once, so that a server takes a few milliseconds."""

    def __init__(self, folder: Path, templates: Path, environment: Mapping[str, str]) -> None:
        self._log_path = folder / "host.log"
        self._control, other = socket.socketpair()
        templates.mkdir(parents=True, exist_ok=True)
        start = f"import sys; sys.path[:] = {sys.path!r}; from conductor_app.testing.server_process import main; "
        command = [sys.executable, "-c", f"{start}main({other.fileno()}, {str(templates.resolve())!r})"]
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment(environment),
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        other.close()
        self._is_ready = False

    def start_server(self, folder: Path) -> "ServerConnection":
        """Start a server whose data are in an empty folder.

        Raises:
            TestKitError: when it does not start.
        """
        self._wait_until_ready()
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [str(folder).encode()], [theirs.fileno()])
        return ServerConnection(ours, folder)

    def stop(self) -> None:
        """End the process."""
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_until_ready(self) -> None:
        if self._is_ready:
            return
        self._control.settimeout(START_SECONDS)
        with suppress(TimeoutError):
            self._is_ready = bool(self._control.recv(64))
        self._control.settimeout(None)
        if not self._is_ready:
            raise TestKitError(f"The server of the test kit did not start. Its log is:\n{read_end(self._log_path)}")


class ServerConnection:
    """The connection over which a test controls its server. The server ends when it is closed."""

    def __init__(self, channel: socket.socket, folder: Path) -> None:
        self._channel, self._lines, self._lock = channel, channel.makefile("rwb"), Lock()
        self.log_path = folder / "server.log"
        self.url: str = self._read()["url"]

    def send(self, command: str, **fields: Any) -> Document:
        """Send a command, and return the answer.

        Raises:
            TestKitError: when the server fails or has ended.
        """
        with self._lock:
            try:
                self._lines.write(json.dumps({"command": command, **fields}).encode() + b"\n")
                self._lines.flush()
            except (OSError, ValueError):
                raise self._ended() from None
            answer = self._read()
        if answer["state"] == "failed":
            raise TestKitError(f"The server failed: {answer['error']}. Its log is:\n{read_end(self.log_path)}")
        return answer

    def close(self) -> None:
        """End the server."""
        self._lines.close()
        self._channel.close()

    def _read(self) -> Document:
        try:
            line = self._lines.readline()
        except OSError:
            line = b""
        if not line:
            raise self._ended()
        answer: Document = json.loads(line)
        return answer

    def _ended(self) -> TestKitError:
        return TestKitError(f"The server of this test has ended. Its log is:\n{read_end(self.log_path)}")


def read_end(path: Path) -> str:
    """Return the end of a log."""
    try:
        return path.read_text("utf-8", "replace")[-LOG_BYTES:] or "(empty)"
    except OSError:
        return "(no log)"


def _environment(changes: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this process without those that configure a server, and with `changes`."""
    configured = {name for variable in BY_VARIABLE for name in (variable, f"{variable}_FILE")}
    kept = {name: value for name, value in os.environ.items() if name not in configured}
    return {name: value for name, value in kept.items() if name not in REMOVED_VARIABLES} | dict(changes)
